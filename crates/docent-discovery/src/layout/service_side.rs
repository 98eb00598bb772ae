/// Side of a service that an instance is on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum ServiceSide {
    Provider,
    Consumer,
}
