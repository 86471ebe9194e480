"""The phantom primitives of kio, as the plain types that satisfy them at run time."""

from datetime import datetime, timedelta
from typing import TypeAlias

Records: TypeAlias = bytes
PhantomStr: TypeAlias = str

i64: TypeAlias = int
i32: TypeAlias = int
i16: TypeAlias = int
i8: TypeAlias = int
uvarlong: TypeAlias = int
u64: TypeAlias = int
uvarint: TypeAlias = int
u32: TypeAlias = int
u16: TypeAlias = int
u8: TypeAlias = int
svarlong: TypeAlias = int
svarint: TypeAlias = int
f64: TypeAlias = float

i32Timedelta: TypeAlias = timedelta
i64Timedelta: TypeAlias = timedelta
TZAware: TypeAlias = datetime
TZAwareMicros: TypeAlias = datetime
