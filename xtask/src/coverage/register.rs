//! The register of requirements.

use std::collections::BTreeSet;

use super::id::Id;

/// What `docs/requirements.md` says.
pub(crate) struct Register {
    pub(crate) topics: Vec<Topic>,
    ids: BTreeSet<Id>,
    families: BTreeSet<String>,
}

/// The rows below one heading.
pub(crate) struct Topic {
    pub(crate) title: String,
    pub(crate) rows: Vec<Row>,
}

/// One requirement.
pub(crate) struct Row {
    pub(crate) id: Id,
    pub(crate) sentence: String,
}

impl Register {
    /// Reads every table whose first column is `Id`. The sentence of a row is in the column `Requirement`, or else in the second.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let mut register = Self { topics: Vec::new(), ids: BTreeSet::new(), families: BTreeSet::new() };
        let (mut title, mut column) = (String::new(), None);
        let mut parent = "";
        for line in text.lines() {
            if let Some(heading) = line.strip_prefix("#### ") {
                title = format!("{parent}: {heading}");
            } else if line.starts_with('#') {
                parent = line.trim_start_matches('#').trim();
                title = parent.to_owned();
            }
            let Some(cells) = cells(line) else {
                column = None;
                continue;
            };
            if cells[0] == "Id" {
                column = Some(cells.iter().position(|cell| *cell == "Requirement").unwrap_or(1));
                register.topics.push(Topic { title: title.clone(), rows: Vec::new() });
            } else if let Some(column) = column.filter(|_| !cells[0].starts_with("---")) {
                let sentence = cells.get(column).copied().filter(|cell| !cell.is_empty());
                let sentence = sentence.ok_or_else(|| format!("there is no sentence in: {line}"))?;
                register.insert(Row { id: cells[0].parse()?, sentence: sentence.to_owned() })?;
            }
        }
        Ok(register)
    }

    fn insert(&mut self, row: Row) -> Result<(), String> {
        if !self.ids.insert(row.id.clone()) {
            return Err(format!("there are two rows {}", row.id));
        }
        self.families.insert(row.id.family.clone());
        if let Some(topic) = self.topics.last_mut() {
            topic.rows.push(row);
        }
        Ok(())
    }

    pub(crate) fn ids(&self) -> impl Iterator<Item = &Id> {
        self.topics.iter().flat_map(|topic| topic.rows.iter().map(|row| &row.id))
    }

    pub(crate) fn contains(&self, id: &Id) -> bool {
        self.ids.contains(id)
    }

    /// Whether the id is meant to be one of a row, or only looks like one.
    pub(crate) fn has_family(&self, id: &Id) -> bool {
        self.families.contains(&id.family)
    }
}

/// The cells of a line of a table.
fn cells(line: &str) -> Option<Vec<&str>> {
    let cells = line.strip_prefix('|')?.trim_end().strip_suffix('|')?;
    Some(cells.split(" | ").map(str::trim).collect())
}

#[cfg(test)]
mod tests {
    use super::Register;

    #[test]
    fn tables_of_ids_are_read() {
        let text = "# All\n| Prefix | Topic |\n|---|---|\n| QQ | words |\n\n## Words\n\n| Id | Who | Requirement |\n|---|---|---|\n\
                    | QQ-1 | both | `a|b` is one. |\n\n#### More\n| Id | Feature | Old |\n|---|---|---|\n| QQ-3 | Batches | no |\n";
        let register = Register::parse(text).expect("a register");
        let rows = register.topics.iter().flat_map(|topic| {
            topic.rows.iter().map(|row| (topic.title.as_str(), row.id.to_string(), row.sentence.as_str()))
        });
        let expected = [("Words", "QQ-1".to_owned(), "`a|b` is one."), ("Words: More", "QQ-3".to_owned(), "Batches")];
        assert_eq!(rows.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn faults_are_named() {
        let fault = |rows: &str| Register::parse(&format!("| Id | Requirement |\n|---|---|\n{rows}")).err();
        assert_eq!(fault("| QQ-1 | One. |\n| QQ-1 | Two. |"), Some("there are two rows QQ-1".to_owned()));
        assert_eq!(fault("| QQ | One. |"), Some("`QQ` is not an id".to_owned()));
        assert_eq!(fault("| QQ-1 |"), Some("there is no sentence in: | QQ-1 |".to_owned()));
    }
}
