use super::arguments::Arguments;
use crate::app::App;
use crate::args::Format;
use crate::exit::Failure;

/// Refuses options that do not fit together.
///
/// # Errors
/// `Usage` with the option and the rule.
pub(super) fn check(app: &App, arguments: &Arguments) -> Result<(), Failure> {
    let format = app.output.format();
    if format == Format::FileSd && arguments.service.is_none() {
        return Err(Failure::usage("--output file-sd needs a SERVICE"));
    }
    for (option, is_set) in
        [("--format", arguments.format.is_some()), ("--header", arguments.header.is_some())]
    {
        if is_set && format != Format::Hostport {
            return Err(Failure::usage(format!("{option} needs `-o hostport`")));
        }
    }
    let Some(file) = &arguments.write else { return Ok(()) };
    if !matches!(format, Format::Hostport | Format::FileSd) {
        return Err(Failure::usage("--write needs `-o hostport` or `-o file-sd`"));
    }
    if file.is_dir() {
        return Err(Failure::usage(format!("--write {file:?} must be a file, not a folder")));
    }
    Ok(())
}
