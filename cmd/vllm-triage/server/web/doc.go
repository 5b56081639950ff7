// Package web renders the pages that the service shows to people: the incident page behind a Slack card, the list of
// incidents, the runbooks, and what is said when something goes wrong. It turns values into HTML and does nothing else:
// it reads no store, asks nobody and knows no clock, so the same view gives the same bytes.
//
// All text of a view is untrusted, template.HTML of a runbook apart, which the runbook package has escaped. Pages hold
// no script and no style of their own; CSP says so to browsers, and every page must be sent with it.
//
// # Addresses
//
// The pages link to these addresses, all below Site.Prefix; whoever serves the pages answers them:
//
//	GET  /incidents                      List; ?status= ?model= ?before= (a cursor)
//	GET  /incidents/ID                   Incident
//	GET  /incidents/ID/chart.png         the picture
//	GET  /incidents/ID.json              the report
//	GET  /runbooks/CAUSE                 Runbook; ?incident=ID fills it
//	GET  /assets/...                     Assets
//	POST /incidents/ID/feedback          FieldOpinion, FieldCause, FieldComment
//	POST /incidents/ID/steps             FieldPage, FieldStep, FieldState
//	POST /incidents/ID/outcome           FieldPage, FieldStep (may be empty), FieldState, FieldComment
//	POST /incidents/ID/recheck           FieldPage, FieldStep (both may be empty)
//
// Every form carries FieldToken. After a form the reader belongs on the page it came from: the runbook of FieldPage when
// that is set, at the anchor of FieldStep, else the incident. All addresses carry ?lang= when the reader's language is
// not the default one, and the parameters of Site.Grant when a signed link let the reader in.
package web
