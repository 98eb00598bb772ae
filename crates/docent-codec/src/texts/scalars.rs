/// Implements the methods of a deserializer that read the text of the key itself.
macro_rules! scalars {
    () => {
        super::scalars::numbers! {
            deserialize_i8 visit_i8 i8, deserialize_i16 visit_i16 i16, deserialize_i32 visit_i32 i32,
            deserialize_i64 visit_i64 i64, deserialize_i128 visit_i128 i128, deserialize_u8 visit_u8 u8,
            deserialize_u16 visit_u16 u16, deserialize_u32 visit_u32 u32, deserialize_u64 visit_u64 u64,
            deserialize_u128 visit_u128 u128
            => |low, high| format!("must be an integer from {low} to {high}")
        }
        super::scalars::numbers! {
            deserialize_f32 visit_f32 f32, deserialize_f64 visit_f64 f64
            => |_, _| "must be a number".to_owned()
        }

        fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, TextError> {
            let text = self.text()?;
            match text.trim().to_ascii_lowercase().as_str() {
                "true" | "on" | "yes" | "1" => visitor.visit_bool(true),
                "false" | "off" | "no" | "0" => visitor.visit_bool(false),
                _ => Err(TextError::of_text("must be true or false", text)),
            }
        }

        fn deserialize_char<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, TextError> {
            self.deserialize_str(visitor)
        }

        fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, TextError> {
            visitor.visit_str(self.text()?)
        }

        fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, TextError> {
            self.deserialize_str(visitor)
        }

        fn deserialize_identifier<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, TextError> {
            self.deserialize_str(visitor)
        }

        fn deserialize_bytes<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, TextError> {
            visitor.visit_bytes(self.text()?.as_bytes())
        }

        fn deserialize_byte_buf<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, TextError> {
            self.deserialize_bytes(visitor)
        }

        fn deserialize_unit<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, TextError> {
            match self.text()? {
                "" => visitor.visit_unit(),
                text => Err(TextError::of_text("must be empty", text)),
            }
        }

        fn deserialize_unit_struct<V: Visitor<'de>>(
            self,
            _: &'static str,
            visitor: V,
        ) -> Result<V::Value, TextError> {
            self.deserialize_unit(visitor)
        }
    };
}

/// Implements the methods of a deserializer for numbers. The closure returns the rule from the lowest and
/// the highest number of the type.
macro_rules! numbers {
    ($($method:ident $visit:ident $number:ty),* => $rule:expr) => {
        $(fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, TextError> {
            let text = self.text()?;
            match text.trim().parse::<$number>() {
                Ok(number) => visitor.$visit(number),
                Err(_) => {
                    let rule: fn($number, $number) -> String = $rule;
                    Err(TextError::of_text(rule(<$number>::MIN, <$number>::MAX), text))
                }
            }
        })*
    };
}

pub(super) use {numbers, scalars};
