"""The types of JSON values: parsed from the schema of a variant, kept, and extended."""

from pyspark.sql.types import (
    ArrayType,
    DoubleType,
    LongType,
    StringType,
    StructField,
    StructType,
)

from tidelog_pipelines.transformations.inference import columns, grown_struct, parse_shape


def struct(**fields: object) -> StructType:
    return StructType([StructField(name, kind) for name, kind in fields.items()])  # type: ignore[arg-type]


def test_a_variants_type_becomes_columns() -> None:
    shape = "OBJECT<a: BIGINT, `b c`: STRING, d: ARRAY<OBJECT<e: DECIMAL(2,1), f: VOID>>, g: VOID>"
    inner = struct(e=DoubleType())
    assert parse_shape(shape) == struct(
        **{"a": LongType(), "b c": StringType(), "d": ArrayType(inner)}
    )


def test_what_differs_from_record_to_record_is_text() -> None:
    assert parse_shape("OBJECT<a: VARIANT, b: ARRAY<VOID>>") == struct(
        a=StringType(), b=ArrayType(StringType())
    )


def test_nothing_seen_has_no_columns() -> None:
    assert parse_shape(None) == struct()
    assert parse_shape("VARIANT") == struct()


def test_a_table_gets_only_names_that_it_can_have() -> None:
    seen = parse_shape("OBJECT<A: BIGINT, `a;b`: BIGINT, a: BIGINT, in: OBJECT<`x y`: BIGINT>>")
    # An inner object with such a name becomes text, so that nothing is lost.
    assert columns(seen) == struct(**{"A": LongType(), "in": StringType()})


def test_a_type_grows_and_never_changes() -> None:
    known = struct(a=LongType(), b=struct(x=LongType()), c=ArrayType(struct(y=LongType())))
    seen = struct(
        z=LongType(),
        a=StringType(),
        b=struct(w=StringType()),
        c=ArrayType(struct(v=LongType())),
        B=LongType(),
    )
    assert grown_struct(known, seen) == struct(
        a=LongType(),
        b=struct(x=LongType(), w=StringType()),
        c=ArrayType(struct(y=LongType(), v=LongType())),
        z=LongType(),
    )
