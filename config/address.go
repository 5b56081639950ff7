package config

import "net/url"

// Address is a URL that may carry a password or a token. It prints without them; Raw tells the whole.
type Address struct{ raw *string }

// NewAddress returns the address s, which is not checked.
func NewAddress(s string) Address { return Address{&s} }

// Raw is the URL as it was written.
func (a Address) Raw() string {
	if a.raw == nil {
		return ""
	}
	return *a.raw
}

// IsZero says whether there is no address.
func (a Address) IsZero() bool { return a.raw == nil || *a.raw == "" }

// String is the URL without userinfo and parameters.
func (a Address) String() string {
	if a.IsZero() {
		return ""
	}
	u, err := url.Parse(*a.raw)
	if err != nil {
		return redacted // It could be anything.
	}
	u.User, u.RawQuery, u.Fragment = nil, "", ""
	return u.String()
}

// GoString implements fmt.GoStringer.
func (a Address) GoString() string { return a.String() }

// MarshalText implements encoding.TextMarshaler.
func (a Address) MarshalText() ([]byte, error) { return []byte(a.String()), nil }

// MarshalYAML implements yaml.Marshaler.
func (a Address) MarshalYAML() (any, error) { return a.String(), nil }

// UnmarshalYAML implements the yaml.Unmarshaler that keeps the decoder's strictness.
func (a *Address) UnmarshalYAML(unmarshal func(any) error) error {
	var s string
	if err := unmarshal(&s); err != nil {
		return err
	}
	*a = NewAddress(s)
	return nil
}
