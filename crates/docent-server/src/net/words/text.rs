use std::fmt;

/// Text of an answer, limited in size.
pub(super) struct Text {
    text: String,
    most: usize,
}

impl Text {
    /// Creates a text of up to `most` bytes.
    pub(super) fn new(most: usize) -> Self {
        Self { text: String::new(), most }
    }

    pub(super) fn into_string(self) -> String {
        self.text
    }
}

impl fmt::Write for Text {
    /// # Errors
    /// If the text would exceed the limit.
    fn write_str(&mut self, text: &str) -> fmt::Result {
        if self.text.len() + text.len() > self.most {
            return Err(fmt::Error);
        }
        self.text.push_str(text);
        Ok(())
    }
}
