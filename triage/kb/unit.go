package kb

// Unit is what a number of a signal counts. Renderers format by it.
type Unit string

// The units of signals. Times are in seconds, shares are 0 to 1.
const (
	Seconds        Unit = "seconds"
	Ratio          Unit = "ratio" // 0 to 1, shown as a percentage.
	Requests       Unit = "requests"
	RequestsPerSec Unit = "requests_per_second"
	Tokens         Unit = "tokens"
	TokensPerSec   Unit = "tokens_per_second" //nolint:gosec // Tokens of text.
	PerSecond      Unit = "per_second"
	Count          Unit = "count"
	Times          Unit = "times" // A factor, shown as "3.2×".
	Bytes          Unit = "bytes"
	Timestamp      Unit = "timestamp" // Unix seconds.
	Cores          Unit = "cores"
	Celsius        Unit = "celsius"
	Watts          Unit = "watts"
	Megahertz      Unit = "megahertz"
)

// Units lists every unit.
func Units() []Unit {
	return []Unit{
		Seconds, Ratio, Requests, RequestsPerSec, Tokens, TokensPerSec, PerSecond, Count, Times, Bytes, Timestamp, Cores,
		Celsius, Watts, Megahertz,
	}
}
