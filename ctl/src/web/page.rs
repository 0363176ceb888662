//! The files of the page, which are part of the program, and the headers that keep foreign content out of it.

use crate::http::{Request, Response};

/// Only content from this server is executed, shown or requested, nothing is inline, and no text can become markup.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; \
                      trusted-types 'none'";

/// Their paths, their types and what is in them.
const FILES: [(&str, &str, &str); 4] = [
    ("/", "text/html; charset=utf-8", include_str!("page/index.html")),
    ("/app.css", "text/css; charset=utf-8", include_str!("page/app.css")),
    ("/icon.svg", "image/svg+xml", include_str!("page/icon.svg")),
    ("/app.js", "text/javascript; charset=utf-8", include_str!("page/app.js")),
];

/// A file of the page.
pub fn file(request: &Request) -> Response {
    if !matches!(request.method.as_str(), "GET" | "HEAD") {
        return Response::refusal(405, "only GET").with("Allow", "GET, HEAD");
    }
    match FILES.iter().find(|(path, _, _)| *path == request.path) {
        Some((_, content_type, text)) => Response::new(200, content_type, *text),
        None => Response::refusal(404, "there is no such page: see /"),
    }
}

/// The same answer with the headers that every answer has. Browsers cache nothing: the next version of the program has
/// other files, and answers of the API must not be written to disk.
pub fn secured(response: Response) -> Response {
    response
        .with("Content-Security-Policy", POLICY)
        .with("X-Content-Type-Options", "nosniff")
        .with("X-Frame-Options", "DENY")
        .with("Referrer-Policy", "no-referrer")
        .with("Cross-Origin-Opener-Policy", "same-origin")
        .with("Cross-Origin-Resource-Policy", "same-origin")
        .with("Cache-Control", "no-store")
}
