// Before the first paint, so that a chosen theme does not flash.
(function () {
  const chosen = new URLSearchParams(location.hash.slice(1)).get("theme");
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
})();
