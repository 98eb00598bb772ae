use bytes::Bytes;

/// Number type of a [`Counter`](crate::Counter): `i64` or `i32`.
pub trait Integer: Copy + Ord + Send + Sync + std::fmt::Debug + sealed::Integer + 'static {}

impl Integer for i32 {}
impl Integer for i64 {}

pub(crate) mod sealed {
    use super::Bytes;

    pub trait Integer: Sized {
        const BYTES: usize;
        const ZERO: Self;
        const ONE: Self;

        fn encode(self) -> Bytes;
        /// Returns `None` if there are too few bytes.
        fn decode(data: &[u8]) -> Option<Self>;
        fn plus(self, other: Self) -> Option<Self>;
        fn minus(self, other: Self) -> Option<Self>;
    }

    macro_rules! integer {
        ($($integer:ty),+) => {$(
            impl Integer for $integer {
                const BYTES: usize = size_of::<$integer>();
                const ZERO: Self = 0;
                const ONE: Self = 1;

                fn encode(self) -> Bytes {
                    Bytes::copy_from_slice(&self.to_be_bytes())
                }

                fn decode(data: &[u8]) -> Option<Self> {
                    // A node that another program created without data has not been counted yet.
                    if data.is_empty() {
                        return Some(0);
                    }
                    data.first_chunk().map(|bytes| Self::from_be_bytes(*bytes))
                }

                fn plus(self, other: Self) -> Option<Self> {
                    self.checked_add(other)
                }

                fn minus(self, other: Self) -> Option<Self> {
                    self.checked_sub(other)
                }
            }
        )+};
    }

    integer!(i32, i64);
}
