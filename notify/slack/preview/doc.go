// Package preview shows Slack messages as a web page, about as Slack does: for the demonstration, which has no Slack,
// and for looking at a message before anybody gets it. It renders the JSON that goes over the wire.
//
// Pages carry no script and no inline style, so they work under a strict Content-Security-Policy; every text is escaped
// by html/template and only http and https links are clickable. Buttons that would call the service do nothing.
package preview
