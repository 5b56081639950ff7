package triage

import "vllm-triage/triage/kb"

// Unit is what a number of a signal counts. Renderers format by it.
type Unit = kb.Unit

// The units of signals. Times are in seconds, shares are 0 to 1.
const (
	Seconds        = kb.Seconds
	Ratio          = kb.Ratio // 0 to 1, shown as a percentage.
	Requests       = kb.Requests
	RequestsPerSec = kb.RequestsPerSec
	Tokens         = kb.Tokens
	TokensPerSec   = kb.TokensPerSec
	PerSecond      = kb.PerSecond
	Count          = kb.Count
	Times          = kb.Times // A factor, shown as "3.2×".
	Bytes          = kb.Bytes
	Timestamp      = kb.Timestamp // Unix seconds.
	Cores          = kb.Cores
	Celsius        = kb.Celsius
	Watts          = kb.Watts
	Megahertz      = kb.Megahertz
)
