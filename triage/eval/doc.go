// Package eval measures the engine on recorded incidents whose cause is known.
//
// A case is one question: a firing webhook, or an ad-hoc question where no alert fired, asked as of the moment it was
// received. Nothing later is read. The truth stands in truth.json and is compared with the report only after the engine is
// done; the engine never sees it.
//
// Figures are means over recordings (macro) where nothing else is said: the alerts of one incident are near copies of one
// another, and a noisy incident must not outvote a quiet one.
package eval
