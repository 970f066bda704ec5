//! What changed between two revisions, for a person who adopts the newer one.

use std::collections::BTreeSet;
use std::fmt::Write;

use super::official::{Definition, Field, MethodUse, Revision};

/// Describes every change of types, members and methods from `old` to `new`.
pub(crate) fn describe(old_name: &str, old: &Revision, new_name: &str, new: &Revision) -> String {
    let mut out = format!("From {old_name} to {new_name}\n");
    section(&mut out, "Methods", methods(old, new));
    let (added, removed, changed) = types(old, new);
    section(&mut out, "New types", added);
    section(&mut out, "Removed types", removed);
    section(&mut out, "Changed types", changed);
    out
}

fn section(out: &mut String, title: &str, lines: Vec<String>) {
    if lines.is_empty() {
        return;
    }
    out.push_str(&format!("\n{title}\n"));
    for line in lines {
        out.push_str(&format!("  {line}\n"));
    }
}

fn methods(old: &Revision, new: &Revision) -> Vec<String> {
    let names: BTreeSet<&String> = old.methods.keys().chain(new.methods.keys()).collect();
    let mut lines = Vec::new();
    for name in names {
        match (old.methods.get(name), new.methods.get(name)) {
            (None, Some(method)) => lines.push(format!("+ {name}: {}", senders(method))),
            (Some(method), None) => lines.push(format!("- {name} (was: {})", senders(method))),
            (Some(before), Some(after)) => {
                let mut changes = Vec::new();
                if senders(before) != senders(after) {
                    changes.push(format!("{} -> {}", senders(before), senders(after)));
                }
                if before.params != after.params {
                    changes.push(format!("params {} -> {}", before.params, after.params));
                }
                if before.may_ask != after.may_ask {
                    let may = if after.may_ask { "may" } else { "may no longer" };
                    changes.push(format!("{may} answer input_required"));
                }
                if !changes.is_empty() {
                    lines.push(format!("~ {name}: {}", changes.join("; ")));
                }
            }
            (None, None) => {}
        }
    }
    lines
}

fn senders(method: &MethodUse) -> String {
    let senders = [(method.client, "client"), (method.server, "server"), (method.embedded, "inside input_required")];
    let senders: Vec<&str> = senders.iter().filter(|(sends, _)| *sends).map(|(_, who)| *who).collect();
    if senders.is_empty() { "nobody".to_owned() } else { senders.join(" and ") }
}

fn types(old: &Revision, new: &Revision) -> (Vec<String>, Vec<String>, Vec<String>) {
    let names: BTreeSet<&String> = old.types.keys().chain(new.types.keys()).collect();
    let (mut added, mut removed, mut changed) = (Vec::new(), Vec::new(), Vec::new());
    for name in names {
        match (old.types.get(name), new.types.get(name)) {
            (None, Some(definition)) => added.push(format!("+ {name}: {}", summary(definition))),
            (Some(_), None) => removed.push(format!("- {name}")),
            (Some(before), Some(after)) if before != after => changed.extend(changes(name, before, after)),
            _ => {}
        }
    }
    (added, removed, changed)
}

fn summary(definition: &Definition) -> String {
    match definition {
        Definition::Struct(members) => {
            let members: Vec<String> = members.iter().map(|(name, field)| format!("{name}{}", mark(field))).collect();
            format!("{{ {} }}", members.join(", "))
        }
        Definition::Strings(values) => values.join(" | "),
        Definition::Union(variants) => variants.iter().cloned().collect::<Vec<_>>().join(" | "),
        Definition::Alias(kind) => kind.to_string(),
    }
}

fn mark(field: &Field) -> &'static str {
    if field.required { "" } else { "?" }
}

fn changes(name: &str, before: &Definition, after: &Definition) -> Vec<String> {
    let mut lines = Vec::new();
    match (before, after) {
        (Definition::Struct(before), Definition::Struct(after)) => {
            let members: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
            for member in members {
                match (before.get(member), after.get(member)) {
                    (None, Some(field)) => lines.push(format!("+ {name}.{member}{}: {}", mark(field), field.kind)),
                    (Some(_), None) => lines.push(format!("- {name}.{member}")),
                    (Some(old), Some(new)) if old != new => {
                        let mut line = format!("~ {name}.{member}:");
                        if old.kind != new.kind {
                            let _ = write!(line, " {} -> {}", old.kind, new.kind);
                        } else if let (Some(old), Some(new)) = (&old.spelled, &new.spelled)
                            && old != new
                        {
                            let _ = write!(line, " {old} -> {new}");
                        }
                        if old.required != new.required {
                            line.push_str(if new.required { " becomes required" } else { " becomes optional" });
                        }
                        lines.push(line);
                    }
                    _ => {}
                }
            }
        }
        (Definition::Union(before), Definition::Union(after)) => {
            lines.extend(after.difference(before).map(|variant| format!("+ {name} may be {variant}")));
            lines.extend(before.difference(after).map(|variant| format!("- {name} may no longer be {variant}")));
        }
        _ => lines.push(format!("~ {name}: {} -> {}", summary(before), summary(after))),
    }
    lines
}
