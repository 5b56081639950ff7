package config

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
)

// Bytes is a number of bytes. It is written as 2MiB, 500KiB, 1GiB or a plain number.
type Bytes int64

var bytesPattern = regexp.MustCompile(`^(\d{1,18}) ?(B|KiB|MiB|GiB)?$`)

var byteUnits = map[string]int64{"": 1, "B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}

// ParseBytes reads a size.
func ParseBytes(s string) (Bytes, error) {
	m := bytesPattern.FindStringSubmatch(s)
	if m == nil {
		return 0, fmt.Errorf("not a size: %q (write 2MiB, 512KiB or a number of bytes)", s)
	}
	n, err := strconv.ParseInt(m[1], 10, 64)
	unit := byteUnits[m[2]]
	if err != nil || n > math.MaxInt64/unit {
		return 0, fmt.Errorf("size %q is too large", s)
	}
	return Bytes(n * unit), nil
}

// String is the size in the largest unit that divides it.
func (b Bytes) String() string {
	for _, unit := range []string{"GiB", "MiB", "KiB"} {
		if size := Bytes(byteUnits[unit]); b >= size && b%size == 0 {
			return strconv.FormatInt(int64(b/size), 10) + unit
		}
	}
	return strconv.FormatInt(int64(b), 10)
}

// MarshalYAML implements yaml.Marshaler.
func (b Bytes) MarshalYAML() (any, error) { return b.String(), nil }

// UnmarshalYAML implements the yaml.Unmarshaler that keeps the decoder's strictness.
func (b *Bytes) UnmarshalYAML(unmarshal func(any) error) error {
	var s string
	if err := unmarshal(&s); err != nil {
		return err
	}
	got, err := ParseBytes(s)
	if err != nil {
		return err
	}
	*b = got
	return nil
}
