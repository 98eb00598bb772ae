use super::proc;
use rustix::process::Pid;
use std::fs;

/// Returns true if a process other than the leader runs in this group. Only Linux can tell. On other systems,
/// and if `/proc` belongs to [another namespace](proc::is_own_namespace), the result is false.
pub(super) fn has_members_besides_leader(group: Pid) -> bool {
    if !proc::is_own_namespace() {
        return false;
    }
    let Ok(processes) = fs::read_dir("/proc") else { return false };
    let numbers = processes.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<i32>().ok());
    numbers.filter(|number| *number != group.as_raw_nonzero().get()).any(|number| {
        // The process may have ended meanwhile.
        let stat = fs::read_to_string(format!("/proc/{number}/stat")).unwrap_or_default();
        running_in(&stat) == Some(group.as_raw_nonzero().get())
    })
}

/// Returns the group of a process that has not ended, from its line in `/proc`.
fn running_in(stat: &str) -> Option<i32> {
    // After the program's name, which is in parentheses and may contain any characters, come state, parent
    // and group.
    let mut fields = stat.rsplit_once(") ")?.1.split(' ');
    let has_ended = ["Z", "X"].contains(&fields.next()?);
    let group = fields.nth(1)?.parse().ok()?;
    (!has_ended).then_some(group)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_group_is_parsed_after_a_name_with_any_characters() {
        assert_eq!(running_in("12 (a) b) S 3 45 6 0 -1"), Some(45));
        assert_eq!(running_in("12 (ended) Z 3 45 6 0 -1"), None);
        assert_eq!(running_in(""), None);
    }
}
