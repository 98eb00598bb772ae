use super::imports::Import;

/// Sets of files of which each imports each other one, perhaps by way of others; at least two files each.
pub(super) fn circles(files: usize, imports: &[Import]) -> Vec<Vec<usize>> {
    let reached: Vec<Vec<bool>> = (0..files).map(|from| reached(from, files, imports)).collect();
    let mut found: Vec<Vec<usize>> = Vec::new();
    for (file, from_here) in reached.iter().enumerate() {
        if found.iter().any(|circle| circle.contains(&file)) {
            continue;
        }
        let both = |other: &usize| from_here[*other] && reached[*other][file];
        let circle: Vec<usize> = (0..files).filter(both).collect();
        if circle.len() > 1 {
            found.push(circle);
        }
    }
    found
}

/// Whether each file is reached from one, in at least one step.
fn reached(from: usize, files: usize, imports: &[Import]) -> Vec<bool> {
    let (mut reached, mut next) = (vec![false; files], vec![from]);
    while let Some(file) = next.pop() {
        for import in imports.iter().filter(|import| import.from == file) {
            if !std::mem::replace(&mut reached[import.to], true) {
                next.push(import.to);
            }
        }
    }
    reached
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(imports: &[(usize, usize)]) -> Vec<Vec<usize>> {
        circles(5, &imports.iter().map(|(from, to)| Import { from: *from, to: *to }).collect::<Vec<_>>())
    }

    #[test]
    fn files_that_reach_each_other_are_a_circle() {
        assert_eq!(found(&[(0, 1), (1, 2), (2, 0), (3, 0)]), [[0, 1, 2]]);
        assert_eq!(found(&[(0, 1), (1, 0), (2, 3), (3, 2), (1, 2)]), [[0, 1], [2, 3]]);
    }

    #[test]
    fn a_line_of_files_is_none() {
        assert_eq!(found(&[(0, 1), (1, 2), (0, 2), (4, 4)]), [[0; 0]; 0]);
    }
}
