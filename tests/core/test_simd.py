"""The worker does not sort with instructions that are slow on its processor."""

from pathlib import Path

import pytest

from apps.core.system import simd
from apps.core.system.simd import slow_features, sorting_environment

FOUND = ["X86_V3", "X86_V4", "AVX512_ICL"]


def processor(maker: str, family: int) -> str:
    one = f"processor\t: 0\nvendor_id\t: {maker}\ncpu family\t: {family}\nmodel\t\t: 17\n"
    return f"{one}\n{one}"


def test_zen_4_does_not_sort_with_avx_512() -> None:
    assert slow_features(processor("AuthenticAMD", 25), FOUND) == ["X86_V4", "AVX512_ICL"]


@pytest.mark.parametrize(
    "cpu", [processor("AuthenticAMD", 26), processor("GenuineIntel", 25), "", "CPU part\t: 0xd40\n"]
)
def test_other_processors_sort_with_all_they_have(cpu: str) -> None:
    assert slow_features(cpu, FOUND) == []


def test_zen_3_has_no_avx_512() -> None:
    assert slow_features(processor("AuthenticAMD", 25), ["X86_V3"]) == []


@pytest.mark.parametrize("variable", [simd.VARIABLE, "NPY_ENABLE_CPU_FEATURES"])
def test_a_choice_of_the_user_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    """With both variables NumPy cannot be imported, and no worker would start."""
    cpu_info = tmp_path / "cpuinfo"
    cpu_info.write_text(processor("AuthenticAMD", 25))
    monkeypatch.setattr(simd, "CPU_INFO", cpu_info)
    monkeypatch.setattr(simd, "slow_features", lambda cpu, found: ["X86_V4"])
    monkeypatch.setenv(variable, "X86_V3")
    assert sorting_environment() == {}


def test_a_system_that_does_not_describe_its_processor_starts_the_worker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(simd, "CPU_INFO", tmp_path / "missing")
    monkeypatch.delenv(simd.VARIABLE, raising=False)
    assert sorting_environment() == {}
