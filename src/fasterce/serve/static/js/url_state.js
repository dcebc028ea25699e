// State in the address: the artifact and the theme, nothing of a person.
const read = () => new URLSearchParams(location.hash.slice(1));

export const get = (name) => read().get(name);

export function put(name, value) {
  const given = read();
  if (value === null) given.delete(name);
  else given.set(name, value);
  history.replaceState(null, "", `#${given}`);
}
