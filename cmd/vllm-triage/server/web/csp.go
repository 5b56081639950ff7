package web

// CSP is the Content-Security-Policy of every page: one style sheet and pictures from here, forms to here, nothing else.
// base-uri has no default in CSP 3, so it is named.
const CSP = "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; frame-ancestors 'none'; " +
	"base-uri 'none'"
