"""What reaches a kernel, against the struct module."""

import ctypes
import enum
import math
import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

# Name, C++ type, code of the struct module ("" for what it does not know).
SCALARS = [
    ("i8", "signed char", "b"),
    ("u8", "std::uint8_t", "B"),
    ("i16", "short", "h"),
    ("u16", "unsigned short int", "H"),
    ("i32", "int", "i"),
    ("u32", "unsigned", "I"),
    ("i64", "long long", "q"),
    ("u64", "std::size_t", "Q"),
    ("f16", "half", "e"),
    ("f32", "float", "f"),
    ("f64", "double", "d"),
    ("flag", "bool", "?"),
]
# Types that say nothing: packed by size.
OPAQUE = [("o1", 1), ("o2", 2), ("o4", 4), ("o8", 8), ("o3", 3), ("o24", 24)]
# The standard formats: the native ones let floats overflow.
CODES = {name: "<" + code for name, _, code in SCALARS}
SIZES = {name: struct.calcsize(code) for name, code in CODES.items()}
SIZES |= {"bf16": 2, "pointer": 8, "fixed": 8} | dict(OPAQUE)
INTEGERS = ["i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64"]

SOURCE = (
    "#include <cstring>\n#include <cstdint>\n#include <cstddef>\n"
    "struct half { unsigned char bytes[2]; };\n"
    "struct __nv_bfloat16 { unsigned char bytes[2]; };\n"
    + "".join(
        f"struct Opaque{size} {{ unsigned char bytes[{size}]; }};\n"
        for _, size in OPAQUE
    )
    + "template <typename T> void put(unsigned char*& out, const T& value) {\n"
    "    std::memcpy(out, &value, sizeof(T));\n    out += sizeof(T);\n}\n"
    '// The word "__global__" in a comment and a string does not count.\n'
    'inline const char* kText = "__global__ void other(int)";\n'
    'extern "C" __global__ void __launch_bounds__(1) store(unsigned char* out'
    + "".join(f",\n    {cpp} {name}" for name, cpp, _ in SCALARS)
    + ",\n    const __nv_bfloat16 bf16, void* pointer, /* read only */ const int* fixed"
    + "".join(f",\n    Opaque{size} {name}" for name, size in OPAQUE)
    + ") {\n"
    + "".join(f"    put(out, {name});\n" for name in SIZES)
    + "}\n"
)


@pytest.fixture(scope="module")
def packed(jit):
    """packed(name, value): the bytes of that parameter when it is given the value."""
    kernel = jit.compile("store", SOURCE)
    out = np.empty(sum(SIZES.values()), np.uint8)
    launch = kernel.prepare(grid=1, block=1, num_threads=1)
    zeros = {
        name: bytes(size) if name.startswith("o") else 0 for name, size in SIZES.items()
    }
    zeros |= {"pointer": None, "fixed": None}
    offsets, at = {}, 0
    for name, size in SIZES.items():
        offsets[name] = at
        at += size

    def get(name, value):
        out[:] = 0xA5
        launch(out, *(value if other == name else zeros[other] for other in SIZES))
        jit.synchronize()
        got = out.tobytes()
        for other, size in SIZES.items():
            if other != name:
                assert not any(got[offsets[other] : offsets[other] + size])
        return got[offsets[name] : offsets[name] + SIZES[name]]

    get.kernel = kernel
    return get


def test_parameters_are_known(packed):
    parameters = {one.name: one for one in packed.kernel.parameters}
    assert list(parameters) == ["out", *SIZES]
    assert {
        name: one.size for name, one in parameters.items() if name != "out"
    } == SIZES
    kinds = {name: one.kind for name, one in parameters.items()}
    assert kinds["i8"] == kinds["i64"] == "signed"
    assert kinds["u16"] == kinds["u64"] == "unsigned"
    assert kinds["f16"] == kinds["f64"] == "float"
    assert kinds["bf16"] == "bfloat16"
    assert (kinds["out"], kinds["fixed"]) == ("pointer", "const pointer")
    assert {kinds[name] for name, _ in OPAQUE} == {"unknown"}


def expected(code, value):
    try:
        return struct.pack(code, value)
    except (struct.error, OverflowError):
        return None


def check(packed, name, value, expected_bytes):
    """The expected bytes, or a ValueError that names the argument when there are none."""
    if expected_bytes is None:
        with pytest.raises(ValueError, match=f"argument [0-9]+ '{name}'.*out of range"):
            packed(name, value)
    else:
        assert packed(name, value) == expected_bytes


@pytest.mark.parametrize("name", INTEGERS)
def test_the_limits_of_integers(packed, name):
    bits = 8 * SIZES[name]
    low, high = (
        (-(1 << (bits - 1)), (1 << (bits - 1)) - 1)
        if name[0] == "i"
        else (0, (1 << bits) - 1)
    )
    for value in (low, high, 0, 1):
        assert packed(name, value) == struct.pack(CODES[name], value)
    for value in (low - 1, high + 1, 1 << 64, -(1 << 63) - 1, 1 << 200, -(1 << 200)):
        check(packed, name, value, None)


@given(name=st.sampled_from(INTEGERS), value=st.integers(-(1 << 65), 1 << 65))
def test_integers(packed, name, value):
    check(packed, name, value, expected(CODES[name], value))


@given(name=st.sampled_from(["f16", "f32", "f64"]), value=st.floats())
def test_floats(packed, name, value):
    got = None
    if math.isnan(value):
        got = struct.unpack(CODES[name], packed(name, value))[0]
        assert math.isnan(got)
    else:
        check(packed, name, value, expected(CODES[name], value))


@given(st.floats(width=16), st.sampled_from([-1, 0, 1]))
def test_half_rounds_to_nearest(packed, value, step):
    if math.isnan(value) or math.isinf(value):
        return
    up = float(np.nextafter(np.float16(value), np.float16(np.inf)))
    middle = (value + up) / 2 if math.isfinite(up) else value
    number = float(np.nextafter(middle, np.inf * step)) if step else middle
    check(packed, "f16", number, expected("e", number))


@given(st.floats(allow_nan=False))
def test_bfloat16_rounds_to_nearest(packed, value):
    # The two neighbours with 8 significant bits, from exact arithmetic.
    if math.isinf(value) or value == 0:
        wanted = struct.pack("<f", value)[2:]
    else:
        exponent = max(math.frexp(value)[1] - 1, -126)
        scaled = math.ldexp(abs(value), 7 - exponent)
        mantissa = round(scaled)  # ties to even
        wanted = None
        if mantissa.bit_length() + exponent - 7 <= 128:
            rounded = math.copysign(math.ldexp(mantissa, exponent - 7), value)
            wanted = struct.pack("<f", rounded)[2:]
    check(packed, "bf16", value, wanted)


@given(
    name=st.sampled_from(["f16", "f32", "f64", "bf16"]),
    value=st.integers(-(1 << 70), 1 << 70),
)
def test_integers_for_floating_point(packed, name, value):
    if name == "bf16":
        assert packed(name, value) == packed(name, float(value))
    else:
        check(packed, name, value, expected(CODES[name], float(value)))


def test_an_integer_that_no_double_holds(packed):
    check(packed, "f64", 10**400, None)


@pytest.mark.parametrize("name", [*INTEGERS, "f16", "f32", "f64", "flag"])
def test_bools(packed, name):
    for value in (True, False, np.True_, np.False_):
        assert packed(name, value) == struct.pack(CODES[name], bool(value))


def test_a_bool_takes_zero_and_one(packed):
    assert packed("flag", 1) == b"\1"
    assert packed("flag", np.int64(0)) == b"\0"
    check(packed, "flag", 2, None)
    check(packed, "flag", -1, None)
    with pytest.raises(TypeError, match="argument 12 'flag'"):
        packed("flag", 1.0)


@given(
    name=st.sampled_from(INTEGERS),
    kind=st.sampled_from("bBhHiIqQ"),
    bits=st.binary(min_size=8, max_size=8),
)
def test_numpy_integers(packed, name, kind, bits):
    scalar = np.frombuffer(bits[: struct.calcsize(kind)], kind)[0]
    check(packed, name, scalar, expected(CODES[name], int(scalar)))


@given(
    name=st.sampled_from(["f16", "f32", "f64"]),
    kind=st.sampled_from("efd"),
    bits=st.binary(min_size=8, max_size=8),
)
def test_numpy_floats(packed, name, kind, bits):
    scalar = np.frombuffer(bits[: struct.calcsize(kind)], kind)[0]
    if not np.isnan(scalar):
        check(packed, name, scalar, expected(CODES[name], float(scalar)))


@given(st.binary(min_size=8, max_size=8))
def test_ctypes_scalars_pass_their_bytes(packed, bits):
    for name, kind in [
        ("i32", ctypes.c_int),
        ("u32", ctypes.c_uint),
        ("i64", ctypes.c_longlong),
        ("u16", ctypes.c_uint16),
        ("i8", ctypes.c_int8),
        ("f32", ctypes.c_float),
        ("f64", ctypes.c_double),
        ("o4", ctypes.c_float),
        ("o8", ctypes.c_double),
        ("u32", ctypes.c_int),
        ("pointer", ctypes.c_void_p),
    ]:
        value = kind.from_buffer_copy(bits[: ctypes.sizeof(kind)])
        assert packed(name, value) == bits[: ctypes.sizeof(kind)]


def test_ctypes_scalars_of_the_wrong_size_or_kind(packed):
    with pytest.raises(ValueError, match="argument 5 'i32'.*8 bytes.*4"):
        packed("i32", ctypes.c_longlong(1))
    with pytest.raises(TypeError, match="argument 10 'f32'"):
        packed("f32", ctypes.c_int(1))
    with pytest.raises(TypeError, match="argument 5 'i32'"):
        packed("i32", ctypes.c_float(1))
    with pytest.raises(TypeError, match="argument 7 'i64'"):
        packed("i64", ctypes.c_void_p(1))


@given(st.sampled_from(OPAQUE), st.data())
def test_bytes_are_structures(packed, opaque, data):
    name, size = opaque
    value = data.draw(st.binary(min_size=size, max_size=size))
    assert packed(name, value) == value
    with pytest.raises(ValueError, match=f"'{name}'.*{size + 1} bytes"):
        packed(name, value + b"x")


def test_structures(packed):
    class Three(ctypes.Structure):
        _fields_ = [
            ("a", ctypes.c_double),
            ("b", ctypes.c_int),
            ("c", ctypes.c_longlong),
        ]

    assert packed("o24", Three(1.5, 2, 3)) == struct.pack("@diq", 1.5, 2, 3)
    record = np.array([(7, 2.5, 9)], dtype=[("a", "i8"), ("b", "f8"), ("c", "u8")])[0]
    assert packed("o24", record) == struct.pack("@qdQ", 7, 2.5, 9)
    with pytest.raises(ValueError, match="'o8'.*24 bytes"):
        packed("o8", Three())
    with pytest.raises(TypeError, match="'i64'"):
        packed("i64", Three())
    assert packed("o8", np.complex64(1 + 2j)) == struct.pack("ff", 1, 2)
    with pytest.raises(TypeError, match="'f64'"):
        packed("f64", np.complex64(1 + 2j))


def test_values_for_types_that_say_nothing(packed):
    for name, signed, unsigned in [
        ("o1", "b", "B"),
        ("o2", "h", "H"),
        ("o4", "i", "I"),
        ("o8", "q", "Q"),
    ]:
        top = (1 << (8 * SIZES[name])) - 1
        assert packed(name, -2) == struct.pack(signed, -2)
        assert packed(name, top) == struct.pack(unsigned, top)
        check(packed, name, top + 1, None)
        check(packed, name, -(top // 2) - 2, None)
    assert packed("o4", 0.1) == struct.pack("f", 0.1)
    assert packed("o8", 0.1) == struct.pack("d", 0.1)
    assert packed("o2", np.float16(0.1)) == struct.pack("e", 0.1)
    assert packed("o4", np.float16(0.5)) == struct.pack("f", 0.5)
    assert packed("o8", None) == bytes(8)
    with pytest.raises(TypeError, match="half or bfloat16"):
        packed("o2", 0.1)
    for name in ("o3", "o24"):
        for value in (0, 1.5, None, True):
            with pytest.raises(TypeError, match=f"'{name}'"):
                packed(name, value)


def test_pointers(packed):
    assert packed("pointer", 2**64 - 1) == b"\xff" * 8
    check(packed, "pointer", -1, None)
    check(packed, "pointer", 2**64, None)
    number = ctypes.c_int(3)
    address = ctypes.addressof(number)
    assert packed("pointer", ctypes.pointer(number)) == struct.pack("P", address)
    for value in (1.0, True, "text", object(), [1]):
        with pytest.raises(TypeError, match="'pointer'"):
            packed("pointer", value)
    with pytest.raises(TypeError, match="argument 5 'i32' .NoneType"):
        packed("i32", None)


def test_objects_with_numbers_in_them(packed):
    class Index:
        def __index__(self):
            return 7

    class Float:
        def __float__(self):
            return 0.5

    class Fails:
        def __index__(self):
            raise ZeroDivisionError("mine")

    class Color(enum.IntEnum):
        RED = 3

    assert packed("i32", Index()) == struct.pack("i", 7)
    assert packed("i32", Color.RED) == struct.pack("i", 3)
    assert packed("f32", Float()) == struct.pack("f", 0.5)
    with pytest.raises(ZeroDivisionError, match="mine"):
        packed("i32", Fails())


def test_floats_do_not_become_integers(packed):
    for name in INTEGERS:
        for value in (1.0, np.float32(1), np.float64(1)):
            with pytest.raises(TypeError, match=f"argument [0-9]+ '{name}'"):
                packed(name, value)


def test_an_array_for_a_number(packed):
    with pytest.raises(
        TypeError, match="argument 5 'i32'.*an array is passed as the address"
    ):
        packed("i32", np.zeros(1, np.int32))
    with pytest.raises(TypeError, match="'o24'.*takes none"):
        packed("o24", np.zeros(3))
