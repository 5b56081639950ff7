package kb

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
)

// AlertPattern shifts a cause's prior when an alert of a matching name fires.
type AlertPattern struct {
	re *regexp.Regexp
	// Shift is in log-odds.
	Shift float64
}

// Matches says whether the alert's name matches as a whole, in any case.
func (p AlertPattern) Matches(name string) bool { return p.re.MatchString(name) }

// AlertPatterns lists the cause's alert shifts, sorted by pattern.
func (c Cause) AlertPatterns() []AlertPattern { return c.patterns }

func (c *Cause) compileAlerts() error {
	for _, k := range slices.Sorted(maps.Keys(c.Alerts)) {
		re, err := regexp.Compile("(?i)^(?:" + k + ")$")
		if err != nil {
			return fmt.Errorf("cause %q: alerts: %w", c.ID, err)
		}
		c.patterns = append(c.patterns, AlertPattern{re, c.Alerts[k]})
	}
	return nil
}
