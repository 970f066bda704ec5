//! The figures as a page: a bar chart for each workload, without anything from elsewhere.

use std::fmt::Write as _;
use std::path::PathBuf;

use super::records::{self, Aim, Figure, Record};

/// Writes the page with what was recorded of these benches.
pub(super) fn write(benches: &[&str]) -> Result<PathBuf, String> {
    let folder = records::folder();
    std::fs::create_dir_all(&folder).map_err(|error| format!("cannot create {}: {error}", folder.display()))?;
    let path = folder.join("report.html");
    let recorded = benches.iter().map(|bench| Ok((*bench, records::read(bench)?)));
    let recorded = recorded.collect::<Result<Vec<_>, String>>()?;
    std::fs::write(&path, page(&recorded)).map_err(|error| format!("cannot write {}: {error}", path.display()))?;
    Ok(path)
}

fn page(benches: &[(&str, Vec<Record>)]) -> String {
    let mut body = String::from(
        "<h1>Benches</h1>\n<p>Ratios within one run are what counts. Longer bars are better only where it is said so.</p>\n",
    );
    body.push_str(&aims(benches));
    for (bench, records) in benches.iter().filter(|(_, records)| !records.is_empty()) {
        let _ = writeln!(body, "<h2>{}</h2>\n<div class=charts>", escaped(bench));
        let figures: Vec<&Figure> = records.iter().filter_map(figure).collect();
        let mut shown: Vec<(&str, &str)> = Vec::new();
        for first in &figures {
            let key = (first.workload.as_str(), first.unit.as_str());
            if !shown.contains(&key) {
                shown.push(key);
                let of_chart = figures.iter().filter(|other| (other.workload.as_str(), other.unit.as_str()) == key);
                body.push_str(&chart(&of_chart.copied().collect::<Vec<_>>()));
            }
        }
        body.push_str("</div>\n");
    }
    format!(
        "<!doctype html>\n<html lang=en><meta charset=utf-8><meta name=viewport content=\"width=device-width\"><title>Benches</title>\n<style>{STYLE}</style>\n{body}</html>\n"
    )
}

fn figure(record: &Record) -> Option<&Figure> {
    match record {
        Record::Figure(figure) => Some(figure),
        Record::Aim(_) => None,
    }
}

/// Lists what was promised, the broken promises first.
fn aims(benches: &[(&str, Vec<Record>)]) -> String {
    let mut aims: Vec<(&str, &Aim)> = Vec::new();
    for (bench, records) in benches {
        aims.extend(records.iter().filter_map(|record| match record {
            Record::Aim(aim) => Some((*bench, aim)),
            Record::Figure(_) => None,
        }));
    }
    if aims.is_empty() {
        return String::new();
    }
    let count = |is_met| aims.iter().filter(|(_, aim)| aim.is_met == is_met).count();
    let mut section = format!(
        "<h2>Aims</h2>\n<p><b class=met>{} met</b>, <b class=missed>{} missed</b>, {} not measured</p>\n<details open><summary>All of them</summary><table>\n<tr><th>bench<th>what<th>aim<th>in this run<th></tr>\n",
        count(Some(true)),
        count(Some(false)),
        count(None)
    );
    aims.sort_by_key(|(_, aim)| aim.is_met.unwrap_or(true));
    for (bench, Aim { what, least, most, value, is_met }) in aims {
        let aim = match (least, most) {
            (Some(least), _) => format!("at least {}", number(*least)),
            (None, Some(most)) => format!("at most {}", number(*most)),
            (None, None) => String::new(),
        };
        let (class, verdict) = match is_met {
            Some(true) => ("met", "met"),
            Some(false) => ("missed", "missed"),
            None => ("", "-"),
        };
        let value = value.map(number).unwrap_or_default();
        let (bench, what) = (escaped(bench), escaped(what));
        let _ = writeln!(section, "<tr><td>{bench}<td>{what}<td>{aim}<td>{value}<td class={class:?}>{verdict}</tr>");
    }
    section.push_str("</table></details>\n");
    section
}

/// Draws the figures of one workload, the best first.
fn chart(figures: &[&Figure]) -> String {
    let mut figures = figures.to_vec();
    let Some(first) = figures.first().copied() else { return String::new() };
    // What grows has an order of its own.
    let has_ours = figures.iter().any(|figure| figure.name.starts_with(OURS));
    if has_ours {
        figures.sort_by(|one, other| one.value.total_cmp(&other.value));
        if first.is_higher_better {
            figures.reverse();
        }
    }
    let name_length = figures.iter().map(|figure| figure.name.chars().count()).max().unwrap_or_default();
    let label = (name_length * CHARACTER + 16).min(WIDTH / 2);
    let bar = WIDTH - label - VALUE;
    let longest = figures.iter().map(|figure| figure.value).fold(f64::MIN_POSITIVE, f64::max);
    let direction = if first.is_higher_better { "higher is better" } else { "lower is better" };
    let height = figures.len() * ROW;
    let mut svg = format!(
        "<figure><figcaption>{} <small>{}, {direction}</small></figcaption>\n<svg viewBox=\"0 0 {WIDTH} {height}\" role=img>\n",
        escaped(&first.workload),
        escaped(&first.unit)
    );
    for (index, Figure { name, value, .. }) in figures.iter().enumerate() {
        let (top, length) = (index * ROW, (value / longest * bar as f64).max(1.0));
        let (class, middle) = (if name.starts_with(OURS) { "ours" } else { "other" }, top + ROW / 2 + 4);
        let _ = writeln!(
            svg,
            "<text class=name x={} y={middle}>{}</text><rect class={class} x={label} y={} width={length:.1} height={} rx=2 /><text x={:.1} y={middle}>{}</text>",
            label - 8,
            escaped(name),
            top + 3,
            ROW - 6,
            label as f64 + length + 6.0,
            number(*value)
        );
    }
    svg.push_str("</svg></figure>\n");
    svg
}

/// Writes a number with as many digits as one reads.
fn number(value: f64) -> String {
    match value.abs() {
        1000.0.. => {
            let digits = format!("{value:.0}");
            let split = digits.len() - 3;
            if split > 3 {
                format!("{},{},{}", &digits[..split - 3], &digits[split - 3..split], &digits[split..])
            } else {
                format!("{},{}", &digits[..split], &digits[split..])
            }
        }
        100.0.. => format!("{value:.0}"),
        10.0.. => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// What the names of this workspace's contestants begin with.
const OURS: &str = "ours";

/// The sizes of a chart: all of it, a character of a name, the room for a value, and the height of a bar with its gap.
const WIDTH: usize = 640;
const CHARACTER: usize = 7;
const VALUE: usize = 90;
const ROW: usize = 24;

const STYLE: &str = "
:root{color-scheme:light dark;--ours:#2563eb;--other:#94a3b8;--met:#15803d;--missed:#c2410c}
body{font:15px/1.5 system-ui,sans-serif;max-width:1320px;margin:2rem auto;padding:0 1rem}
h2{border-bottom:1px solid var(--other);padding-bottom:.25rem;margin-top:2.5rem}
.charts{display:grid;grid-template-columns:repeat(auto-fill,minmax(520px,1fr));gap:1rem 2rem}
figure{margin:0}figcaption{font-weight:600;margin:.25rem 0}small{font-weight:400;opacity:.7}
svg{width:100%;height:auto;display:block}svg text{font-size:13px;fill:currentColor}.name{text-anchor:end}
.ours{fill:var(--ours)}.other{fill:var(--other)}
table{border-collapse:collapse;font-size:14px}td,th{padding:.15rem .75rem;text-align:left;border-bottom:1px solid #8883}
.met{color:var(--met)}.missed{color:var(--missed);font-weight:600}
";

#[cfg(test)]
mod tests {
    use super::*;

    fn figure(name: &str, value: f64) -> Record {
        Record::Figure(Figure {
            workload: "a & b".to_owned(),
            unit: "requests/s".to_owned(),
            is_higher_better: true,
            name: name.to_owned(),
            value,
        })
    }

    #[test]
    fn a_workload_is_one_chart_with_the_best_first() {
        let aim = Aim { what: "fast".to_owned(), least: Some(0.85), most: None, value: Some(0.5), is_met: Some(false) };
        let page =
            page(&[("http", vec![figure("rmcp", 10.0), figure("ours", 20.0), Record::Aim(aim)]), ("types", vec![])]);
        assert_eq!(page.matches("<svg").count(), 1);
        assert!(page.find(">ours<").unwrap() < page.find(">rmcp<").unwrap(), "{page}");
        assert!(page.contains("a &amp; b") && page.contains("<b class=missed>1 missed</b>"), "{page}");
        assert!(!page.contains("<h2>types") && !page.contains("<script") && !page.contains("http://"), "{page}");
    }

    #[test]
    fn numbers_are_short() {
        let numbers = [0.123, 12.34, 123.4, 1234.5, 12_345.6, 1_234_567.8].map(number);
        assert_eq!(numbers, ["0.12", "12.3", "123", "1,234", "12,346", "1,234,568"]);
    }
}
