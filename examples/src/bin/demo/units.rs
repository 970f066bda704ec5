//! A tool with enums as arguments, and with errors that help the model to correct them.

use mcp::schemars::{self, JsonSchema};
use mcp::server::{Json, RequestContext, Tool, tool};
use mcp::types::ToolAnnotations;
use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Unit {
    Metre,
    Kilometre,
    Foot,
    Mile,
    Gram,
    Kilogram,
    Ounce,
    Pound,
    Celsius,
    Fahrenheit,
    Kelvin,
}

#[derive(Deserialize, JsonSchema)]
struct Convert {
    value: f64,
    from: Unit,
    to: Unit,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Converted {
    value: f64,
    unit: Unit,
}

/// Conversion between units.
pub(crate) fn convert() -> Tool {
    tool("convert", async |_: RequestContext, arguments: Convert| arguments.run())
        .title("Unit conversion")
        .description("Converts a length, a mass or a temperature from one unit to another")
        .annotations(ToolAnnotations::default().read_only_hint(true).open_world_hint(false))
}

/// Units of one quantity can be converted into each other.
#[derive(Debug, PartialEq)]
enum Quantity {
    Length,
    Mass,
    Temperature,
}

impl Unit {
    /// Returns the factor and the offset that convert a value to the base unit (metre, gram, kelvin).
    fn to_base(self) -> (Quantity, f64, f64) {
        match self {
            Self::Metre => (Quantity::Length, 1.0, 0.0),
            Self::Kilometre => (Quantity::Length, 1000.0, 0.0),
            Self::Foot => (Quantity::Length, 0.3048, 0.0),
            Self::Mile => (Quantity::Length, 1609.344, 0.0),
            Self::Gram => (Quantity::Mass, 1.0, 0.0),
            Self::Kilogram => (Quantity::Mass, 1000.0, 0.0),
            Self::Ounce => (Quantity::Mass, 28.349_523_125, 0.0),
            Self::Pound => (Quantity::Mass, 453.592_37, 0.0),
            Self::Celsius => (Quantity::Temperature, 1.0, 273.15),
            Self::Fahrenheit => (Quantity::Temperature, 5.0 / 9.0, 459.67 * 5.0 / 9.0),
            Self::Kelvin => (Quantity::Temperature, 1.0, 0.0),
        }
    }
}

impl Convert {
    /// Converts the value. The error becomes a result with `isError`, which the model reads.
    fn run(self) -> Result<Json<Converted>, String> {
        let ((quantity, factor, offset), (wanted, to_factor, to_offset)) = (self.from.to_base(), self.to.to_base());
        if quantity != wanted {
            return Err(format!(
                "{:?} is a {quantity:?} and {:?} a {wanted:?}: convert between units of one quantity",
                self.from, self.to
            )
            .to_lowercase());
        }
        let value = (self.value * factor + offset - to_offset) / to_factor;
        // Digits after the ninth are rounding errors.
        Ok(Json(Converted { value: (value * 1e9).round() / 1e9, unit: self.to }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn convert(value: f64, from: Unit, to: Unit) -> Result<f64, String> {
        Convert { value, from, to }.run().map(|Json(converted)| converted.value)
    }

    #[test]
    fn units_of_one_quantity_are_converted() {
        assert_eq!(convert(26.2, Unit::Mile, Unit::Kilometre), Ok(42.164_812_8));
        assert_eq!(convert(-40.0, Unit::Celsius, Unit::Fahrenheit), Ok(-40.0));
        assert_eq!(convert(16.0, Unit::Ounce, Unit::Pound), Ok(1.0));
        let refused = "mile is a length and gram a mass: convert between units of one quantity";
        assert_eq!(convert(1.0, Unit::Mile, Unit::Gram), Err(refused.to_owned()));
    }
}
