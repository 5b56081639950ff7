package format_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"vllm-triage/notify/format"
	"vllm-triage/triage"
)

var (
	seoul = time.FixedZone("KST", 9*3600)
	now   = time.Date(2026, 11, 29, 14, 30, 0, 0, seoul)
)

func TestValue(t *testing.T) {
	t.Parallel()
	tests := []struct {
		value  float64
		unit   triage.Unit
		en, ko string
	}{
		{1312, triage.TokensPerSec, "1.3k tok/s", "1.3k tok/s"},
		{0.42, triage.Seconds, "420 ms", "420 ms"},
		{0.00042, triage.Seconds, "0.42 ms", "0.42 ms"},
		{0.9999, triage.Seconds, "1 s", "1초"},
		{12.44, triage.Seconds, "12.4 s", "12.4초"},
		{95, triage.Seconds, "95 s", "95초"},
		{150, triage.Seconds, "2 min 30 s", "2분 30초"},
		{0, triage.Seconds, "0 s", "0초"},
		{0.98, triage.Ratio, "98 %", "98%"},
		{0.9999, triage.Ratio, "99.9 %", "99.9%"},
		{1, triage.Ratio, "100 %", "100%"},
		{0.004, triage.Ratio, "0.4 %", "0.4%"},
		{0.054, triage.Ratio, "5.4 %", "5.4%"},
		{0, triage.Ratio, "0 %", "0%"},
		{3.24, triage.Times, "3.2×", "3.2배"},
		{13.02, triage.Times, "13×", "13배"},
		{61, triage.Requests, "61", "61"},
		{75.4, triage.Requests, "75", "75"},
		{0.6, triage.Requests, "0.6", "0.6"},
		{4.92, triage.RequestsPerSec, "4.9 req/s", "4.9 req/s"},
		{0.2, triage.PerSecond, "0.2/s", "0.2/s"},
		{2048, triage.Tokens, "2k tok", "2k tok"},
		{1.5 * (1 << 30), triage.Bytes, "1.5 GiB", "1.5 GiB"},
		{3.24, triage.Cores, "3.2 CPU", "3.2 CPU"},
		{1, triage.Cores, "1 CPU", "1 CPU"},
		{71, triage.Celsius, "71 °C", "71°C"},
		{1410, triage.Megahertz, "1.4 GHz", "1.4 GHz"},
		{900, triage.Megahertz, "900 MHz", "900 MHz"},
		{310, triage.Watts, "310 W", "310 W"},
		{float64(now.Unix()), triage.Timestamp, "14:30 KST", "14:30 KST"},
		{1e300, triage.Timestamp, "1.0e+300", "1.0e+300"},
		{math.NaN(), triage.Ratio, "–", "–"},
		{math.Inf(1), triage.Seconds, "∞ s", "∞초"},
		{7, triage.Unit("furlongs"), "7", "7"},
	}
	en, ko := format.New("en", seoul, now), format.New("ko", seoul, now)
	for _, tt := range tests {
		require.Equal(t, tt.en, en.Value(tt.value, tt.unit))
		require.Equal(t, tt.ko, ko.Value(tt.value, tt.unit))
	}
}

func TestNumber(t *testing.T) {
	t.Parallel()
	for value, want := range map[float64]string{
		0: "0", 0.0421: "0.042", 0.5: "0.5", 0.996: "1", 1: "1", 3.25: "3.2", 61: "61", 99.96: "100", 999.4: "999",
		999.6: "1k", 1312: "1.3k", 12_400: "12.4k", 999_600: "1M", 2e6: "2M", 3.1e9: "3.1G", 5e12: "5T", 1e18: "1.0e+18",
		-61: "-61", -1312: "-1.3k", 0.00002: "2e-05",
	} {
		require.Equal(t, want, format.Number(value), "%v", value)
	}
}

func TestDuration(t *testing.T) {
	t.Parallel()
	en, ko := format.New("en", nil, now), format.New("ko", nil, now)
	for d, want := range map[time.Duration][2]string{
		120 * time.Millisecond:                       {"120 ms", "120 ms"},
		45 * time.Second:                             {"45 s", "45초"},
		time.Minute - time.Millisecond:               {"60 s", "60초"},
		3*time.Minute + 20*time.Second:               {"3 min 20 s", "3분 20초"},
		14*time.Minute + 29*time.Second:              {"14 min", "14분"},
		time.Hour - time.Second:                      {"1 h", "1시간"},
		80 * time.Minute:                             {"1 h 20 min", "1시간 20분"},
		51 * time.Hour:                               {"2 d 3 h", "2일 3시간"},
		-2 * time.Minute:                             {"-2 min", "-2분"},
		time.Duration(math.MinInt64):                 {"-106751 d 23 h", "-106751일 23시간"},
		24*time.Hour - 20*time.Second:                {"1 d", "1일"},
		time.Hour + 59*time.Minute + 45*time.Second:  {"2 h", "2시간"},
		9*time.Minute + 59*time.Second + 900*1000000: {"10 min", "10분"},
	} {
		require.Equal(t, want[0], en.Duration(d))
		require.Equal(t, want[1], ko.Duration(d))
	}
}

func TestClock(t *testing.T) {
	t.Parallel()
	en, ko := format.New("en", seoul, now), format.New("ko", seoul, now)
	today := time.Date(2026, 11, 29, 5, 2, 7, 0, time.UTC)
	require.Equal(t, "14:02 KST", en.Clock(today))
	require.Equal(t, "14:02:07", en.ClockSeconds(today))
	require.Equal(t, "KST", en.Zone(today))
	yesterday := today.Add(-24 * time.Hour)
	require.Equal(t, "Nov 28 14:02 KST", en.Clock(yesterday))
	require.Equal(t, "11월 28일 14:02 KST", ko.Clock(yesterday))
	require.Equal(t, "2025 Nov 29 14:02 KST", en.Clock(today.AddDate(-1, 0, 0)))
	require.Equal(t, "05:02 UTC", format.New("en", nil, now).Clock(today))
}

func TestChange(t *testing.T) {
	t.Parallel()
	en := format.New("en", nil, now)
	a, b := 0.05, 0.98
	require.Equal(t, "5 % → 98 %", en.Change(&a, &b, triage.Ratio))
	require.Equal(t, "98 %", en.Change(nil, &b, triage.Ratio))
	require.Equal(t, "5 % → –", en.Change(&a, nil, triage.Ratio))
	require.Equal(t, "–", en.Change(nil, nil, triage.Ratio))
}

func FuzzValue(f *testing.F) {
	f.Add(0.0, "seconds")
	f.Add(math.MaxFloat64, "ratio")
	f.Add(-math.MaxFloat64, "timestamp")
	f.Add(math.SmallestNonzeroFloat64, "bytes")
	en, ko := format.New("en", seoul, now), format.New("ko", seoul, now)
	f.Fuzz(func(t *testing.T, v float64, unit string) {
		for _, s := range []string{en.Value(v, triage.Unit(unit)), ko.Value(v, triage.Unit(unit))} {
			require.NotEmpty(t, s)
			require.LessOrEqual(t, len(s), 40, "%g %s", v, unit)
		}
	})
}
