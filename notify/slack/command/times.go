package command

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

var durationPart = regexp.MustCompile(`^(\d{1,6}(?:\.\d{1,3})?)\s*([a-z가-힣]*)`)

var units = map[string]time.Duration{
	"":  time.Minute, // "for 30" means minutes.
	"s": time.Second, "sec": time.Second, "secs": time.Second, "second": time.Second, "seconds": time.Second, "초": time.Second,
	"m": time.Minute, "min": time.Minute, "mins": time.Minute, "minute": time.Minute, "minutes": time.Minute, "분": time.Minute,
	"h": time.Hour, "hr": time.Hour, "hrs": time.Hour, "hour": time.Hour, "hours": time.Hour, "시간": time.Hour,
	"d": 24 * time.Hour, "day": 24 * time.Hour, "days": 24 * time.Hour, "일": 24 * time.Hour,
}

func isUnit(s string) bool {
	_, ok := units[strings.ToLower(s)]
	return ok && s != ""
}

func endsInDigit(s string) bool { return s != "" && s[len(s)-1] >= '0' && s[len(s)-1] <= '9' }

// parseDuration reads 30m, 1h30m, 90min, 2hours, 1.5h, 30 (minutes), 30분.
func parseDuration(s string) (time.Duration, error) {
	s = strings.ToLower(strings.TrimSpace(s))
	if s == "" {
		return 0, errors.New("empty duration")
	}
	var total time.Duration
	for s != "" {
		m := durationPart.FindStringSubmatch(s)
		if m == nil {
			return 0, fmt.Errorf("%q is no duration", s)
		}
		n, err := strconv.ParseFloat(m[1], 64)
		unit, known := units[m[2]]
		if err != nil || !known {
			return 0, fmt.Errorf("%q is no duration", s)
		}
		total += time.Duration(n * float64(unit))
		s = strings.TrimSpace(s[len(m[0]):])
	}
	return total, nil
}

// full are times with a date; those without a zone are the user's.
var full = []string{
	time.RFC3339, "2006-01-02T15:04Z07:00", "2006-01-02 15:04:05Z07:00", "2006-01-02 15:04Z07:00",
	"2006-01-02T15:04:05", "2006-01-02T15:04", "2006-01-02 15:04:05", "2006-01-02 15:04",
	"2006-01-02 3:04pm", "2006-01-02 3:04 pm",
}

var clocks = []string{"15:04:05", "15:04", "3:04:05pm", "3:04pm", "3pm", "3:04:05 pm", "3:04 pm", "3 pm"}

// parseTime reads a moment: RFC 3339, a date and a time, a time of day (the last one that has passed), or a time of
// yesterday. "UTC", "GMT" and "Z" behind it change the zone; a dash or "ago" does too: "-30m", "30m ago".
func parseTime(s string, now time.Time) (time.Time, bool) {
	s = strings.TrimSpace(s)
	zone := now.Location()
	for _, suffix := range []string{" utc", " gmt", " z"} {
		if rest, ok := strings.CutSuffix(strings.ToLower(s), suffix); ok {
			s, zone = s[:len(rest)], time.UTC
			now = now.UTC()
		}
	}
	if rest, ok := strings.CutSuffix(strings.ToLower(s), " ago"); ok {
		if d, err := parseDuration(strings.ReplaceAll(rest, " ", "")); err == nil {
			return now.Add(-d), true
		}
	}
	if rest, ok := strings.CutPrefix(s, "-"); ok {
		if d, err := parseDuration(rest); err == nil {
			return now.Add(-d), true
		}
	}
	if strings.EqualFold(s, "now") {
		return now, true
	}
	for _, layout := range full {
		if t, err := time.ParseInLocation(layout, upperT(s), zone); err == nil && t.Year() > 2000 && t.Year() < 2200 {
			return t, true
		}
	}
	back := 0
	clock := strings.ToLower(s)
	for _, word := range []string{"yesterday ", "어제 "} {
		if rest, ok := strings.CutPrefix(clock, word); ok {
			clock, back = rest, 1
		}
	}
	for _, layout := range clocks {
		t, err := time.Parse(layout, clock)
		if err != nil {
			continue
		}
		at := time.Date(now.Year(), now.Month(), now.Day()-back, t.Hour(), t.Minute(), t.Second(), 0, zone)
		if back == 0 && at.After(now.Add(time.Minute)) {
			at = at.AddDate(0, 0, -1) // 23:50 asked at 00:10 was yesterday.
		}
		return at, true
	}
	return time.Time{}, false
}

// upperT lets "2026-11-29t14:05z" pass, but keeps am and pm.
func upperT(s string) string {
	if len(s) > 10 && (s[10] == 't' || s[10] == 'T') {
		return strings.ToUpper(s)
	}
	return s
}
