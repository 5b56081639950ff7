package chatops

import (
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"
)

var (
	durationPart = regexp.MustCompile(`^(\d{1,9}(?:\.\d{1,3})?)\s*([a-z가-힣]+)`)
	clockTime    = regexp.MustCompile(`^(\d{1,2})(?::(\d{2}))?(?::(\d{2}))?\s*(am|pm|z)?$`)
	number       = regexp.MustCompile(`^\d{1,9}(?:\.\d{1,3})?$`)
)

var durationUnits = map[string]time.Duration{}

func init() { //nolint:gochecknoinits // A table written by unit instead of by word.
	for unit, names := range map[time.Duration]string{
		time.Second: "s sec secs second seconds 초", time.Minute: "m min mins minute minutes 분",
		time.Hour: "h hr hrs hour hours 시간", 24 * time.Hour: "d day days 일",
	} {
		for name := range strings.FieldsSeq(names) {
			durationUnits[name] = unit
		}
	}
}

// parseDuration reads a length of time as people write it: 30m, 1h30m, "90 seconds", 2시간.
func parseDuration(s string) (time.Duration, bool) {
	s = strings.ToLower(strings.TrimSpace(s))
	total := 0.0
	for s != "" {
		m := durationPart.FindStringSubmatch(s)
		if m == nil {
			return 0, false
		}
		n, err := strconv.ParseFloat(m[1], 64)
		unit, ok := durationUnits[m[2]]
		if err != nil || !ok {
			return 0, false
		}
		total += n * float64(unit)
		s = strings.TrimSpace(s[len(m[0]):])
	}
	if total <= 0 || total > math.MaxInt64/2 {
		return 0, false
	}
	return time.Duration(total).Round(time.Second), true
}

// takeDuration reads a length of time from the beginning of some words and says how many it took; 0: there is none.
func takeDuration(ws []string) (d time.Duration, taken int) {
	if len(ws) >= 2 && number.MatchString(ws[0]) { // "30 min".
		if d, ok := parseDuration(ws[0] + ws[1]); ok {
			return d, 2
		}
	}
	if len(ws) >= 1 {
		if d, ok := parseDuration(ws[0]); ok {
			return d, 1
		}
	}
	return 0, 0
}

// layouts are the forms of a date with a time. Those without a zone are in the author's.
var layouts = []string{
	time.RFC3339, "2006-01-02T15:04Z07:00", "2006-01-02T15:04:05", "2006-01-02T15:04", "2006-01-02 15:04:05", "2006-01-02 15:04",
	"2006-01-02 15:04:05Z07:00", "2006-01-02 15:04Z07:00",
}

// takeTime reads a point in time from the beginning of some words and says how many it took; 0: there is none. A time of
// day is the last one that was: 23:50, asked at 00:10, is yesterday's.
func takeTime(ws []string, now time.Time, zone *time.Location) (t time.Time, taken int) {
	if len(ws) == 0 {
		return time.Time{}, 0
	}
	if strings.EqualFold(ws[0], "now") || ws[0] == "지금" {
		return now, 1
	}
	if d, n := takeDuration(ws); n > 0 && n < len(ws) && (strings.EqualFold(ws[n], "ago") || ws[n] == "전") {
		return now.Add(-d), n + 1
	}
	day, rest := now.In(zone), ws
	yesterday := strings.EqualFold(ws[0], "yesterday") || ws[0] == "어제"
	if yesterday || strings.EqualFold(ws[0], "today") || ws[0] == "오늘" {
		rest = ws[1:]
		if yesterday {
			day = day.AddDate(0, 0, -1)
		}
	}
	named := len(ws) - len(rest)
	for _, n := range []int{3, 2, 1} {
		if len(rest) < n {
			continue
		}
		text := strings.Join(rest[:n], " ")
		in, utc := zone, false
		if n > 1 && (strings.EqualFold(rest[n-1], "utc") || strings.EqualFold(rest[n-1], "gmt") || strings.EqualFold(rest[n-1], "z")) {
			text, in, utc = strings.Join(rest[:n-1], " "), time.UTC, true
		}
		if t, ok := parseClock(text, day, in); ok {
			if named == 0 && t.After(now) {
				t = t.AddDate(0, 0, -1)
			}
			return t, named + n
		}
		if named > 0 || n == 3 && !utc {
			continue
		}
		for _, layout := range layouts {
			if t, err := time.ParseInLocation(layout, strings.ToUpper(text), in); err == nil {
				return t, n
			}
		}
	}
	return time.Time{}, 0
}

// parseClock reads a time of day: 14:05, 14:05:30, 2:05pm, 2 pm, 14:05z.
func parseClock(s string, day time.Time, zone *time.Location) (time.Time, bool) {
	m := clockTime.FindStringSubmatch(strings.ToLower(s))
	if m == nil {
		return time.Time{}, false
	}
	if m[2] == "" && m[4] != "am" && m[4] != "pm" {
		return time.Time{}, false // A bare number.
	}
	part := func(s string) int {
		n, err := strconv.Atoi(s)
		if err != nil {
			return 0 // Empty: left out.
		}
		return n
	}
	hour, minute, second := part(m[1]), part(m[2]), part(m[3])
	switch m[4] {
	case "am", "pm":
		if hour < 1 || hour > 12 {
			return time.Time{}, false
		}
		hour %= 12
		if m[4] == "pm" {
			hour += 12
		}
	case "z":
		zone = time.UTC
	}
	if hour > 23 || minute > 59 || second > 59 {
		return time.Time{}, false
	}
	day = day.In(zone)
	return time.Date(day.Year(), day.Month(), day.Day(), hour, minute, second, 0, zone), true
}
