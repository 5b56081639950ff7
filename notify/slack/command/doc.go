// Package command reads what people type behind the slash command: forgiving about order, quotes and abbreviations,
// and with a suggestion where it cannot be.
//
//	[model] [for 30m] [at 14:05|2026-11-29T14:05Z] [ns=… instance=…] [--share]
//	models | incidents | silences | explain CAUSE | help
package command
