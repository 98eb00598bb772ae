//! Texts that would do harm if a page took them for markup.

/// Name of a node. Names contain no slash.
pub(crate) const NAME: &str = "\"><img src=x onerror=alert(1)><script>alert(2)<script>\u{202e}txt";

/// Host of an instance.
pub(crate) const HOST: &str = "<b onclick=alert(3)>10.0.0.9</b>";

/// Data of a node, with control characters.
pub(crate) const TEXT: &str =
    "</pre></td></script><script>alert(4)</script>\u{0}\u{1b}[31m\u{8}\u{202e}<img src=x onerror='alert(5)'>";

/// Label of a client.
pub(crate) const LABEL: &str = "<svg onload=alert(6)>\"'`${alert(7)}";

/// Identity of a client, or identifier of a candidate.
pub(crate) const IDENTITY: &str = "javascript:alert(8)//<iframe srcdoc='<script>alert(9)</script>'></iframe>";
