import pytest

from fasterce.serve.api.applicants import Applicants
from fasterce.serve.messages import StartError
from tests.serve.api.conftest import FEATURES


def test_from_csv_and_parquet_alike(tmp_path):
    import pandas as pd

    frame = pd.DataFrame(
        {"who": ["a", "b"], "duration": [12, 24], "amount": [None, 3.5], "housing": ["own", "rent"], "more": [1, 2]}
    )
    frame.to_csv(tmp_path / "people.csv", index=False)
    frame.to_parquet(tmp_path / "people.parquet")
    found = [Applicants.read(tmp_path / name, "who", FEATURES).people for name in ("people.csv", "people.parquet")]
    assert found[0] == found[1]
    assert found[0][1] == {"id": "b", "values": {"duration": 24, "amount": 3.5, "housing": "rent"}}


@pytest.mark.parametrize("content", [b"duration,amount\n1,2\n", b"\xff\xfe\x00"])
def test_a_file_that_will_not_do_is_told(tmp_path, content):
    path = tmp_path / "people.csv"
    path.write_bytes(content)
    with pytest.raises(StartError, match=r"people\.csv"):
        Applicants.read(path, None, FEATURES)


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(StartError, match=r"nobody\.csv"):
        Applicants.read(tmp_path / "nobody.csv", None, FEATURES)
