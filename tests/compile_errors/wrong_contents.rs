// expect: `u32` cannot be the contents of a resource
// expect: return text, bytes (`Vec<u8>`), `Json<T>`, `ResourceContents`, or an `Option` or `Result` of one of these

use mcp_server::resource;

fn main() {
    resource("sensor:temperature", "temperature", async |_ctx| 20_u32);
}
