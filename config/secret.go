package config

import (
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode"
	"unicode/utf8"
)

// redacted stands in for a secret wherever it would be printed.
const redacted = "<secret>"

// Secret is a credential. It prints as "<secret>" in every format; only Read tells it. The zero value is not set.
//
// The text sits behind a pointer because package fmt, when it reaches a value through an unexported field, prints the
// value's own fields and calls none of its methods; of a pointer to a string it prints the address.
type Secret struct {
	text *string // nil: it is in file, or not set.
	file string
}

// NewSecret returns a secret of that text.
func NewSecret(text string) Secret { return Secret{text: &text} }

// FileSecret returns a secret that is read from a file on each use.
func FileSecret(path string) Secret { return Secret{file: path} }

// IsSet says whether there is a secret, without reading it.
func (s Secret) IsSet() bool { return s.text != nil || s.file != "" }

// IsZero is the opposite of IsSet; encoders leave out zero values by it.
func (s Secret) IsZero() bool { return !s.IsSet() }

// maxSecret is the largest file that is taken for a secret, in bytes.
const maxSecret = 64 << 10

// Read returns the secret without the white space around it. A secret that is not set is empty. A file that cannot be
// read, or holds nothing, is an error: an empty credential must never count as one. So is what no header can carry, such
// as several lines: it would match nothing that anybody can send.
func (s Secret) Read() (string, error) {
	switch {
	case s.text != nil:
		text := strings.TrimSpace(*s.text) // Variables that were filled from a file often end in a line break.
		if err := sendable(text); err != nil {
			return "", fmt.Errorf("read secret: it %w", err)
		}
		return text, nil
	case s.file == "":
		return "", nil
	}
	data, err := readFile(s.file)
	if err != nil {
		return "", fmt.Errorf("read secret: %w", err)
	}
	text := strings.TrimSpace(string(data))
	if text == "" {
		return "", fmt.Errorf("read secret: %s is empty", s.file)
	}
	if err := sendable(text); err != nil {
		return "", fmt.Errorf("read secret: %s %w", s.file, err)
	}
	return text, nil
}

// readFile reads a file that is small enough for a secret.
func readFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // Nothing was written.
	data, err := io.ReadAll(io.LimitReader(f, maxSecret+1))
	if err == nil && len(data) > maxSecret {
		err = fmt.Errorf("%s is larger than %d KiB, so it holds no secret", path, maxSecret>>10)
	}
	return data, err
}

// sendable says what keeps a text from being a secret.
func sendable(text string) error {
	switch {
	case strings.ContainsAny(text, "\r\n"):
		return errors.New("has several lines: a secret is one line")
	case !utf8.ValidString(text), strings.ContainsFunc(text, unicode.IsControl), strings.ContainsRune(text, '\uFEFF'):
		return errors.New("holds bytes that are no text: save it as UTF-8 without a byte order mark")
	}
	return nil
}

// Equal says whether both come from the same text or file. It takes the same time wherever they differ.
func (s Secret) Equal(o Secret) bool {
	if s.text == nil || o.text == nil {
		return s.text == o.text && s.file == o.file
	}
	return subtle.ConstantTimeCompare([]byte(*s.text), []byte(*o.text)) == 1
}

// String implements fmt.Stringer.
func (s Secret) String() string {
	if !s.IsSet() {
		return ""
	}
	return redacted
}

// Format implements fmt.Formatter, so that no verb reaches the text.
func (s Secret) Format(f fmt.State, _ rune) {
	_, _ = f.Write([]byte(s.String())) // A State's Write reports nothing that could be acted upon.
}

// MarshalText implements encoding.TextMarshaler, which JSON and loggers use.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// MarshalYAML implements yaml.Marshaler.
func (s Secret) MarshalYAML() (any, error) {
	if !s.IsSet() {
		return nil, nil
	}
	return redacted, nil
}

// UnmarshalYAML implements the yaml.Unmarshaler that keeps the decoder's strictness.
func (s *Secret) UnmarshalYAML(unmarshal func(any) error) error {
	var text string
	if err := unmarshal(&text); err != nil {
		return err
	}
	if text == redacted {
		return errors.New(`is the placeholder "<secret>" of a printed configuration`)
	}
	*s = Secret{}
	if text != "" {
		*s = NewSecret(text)
	}
	return nil
}
