package telemetry

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

const (
	// maxBody is the largest reply to a batch that is read, in bytes after decompression.
	maxBody = 32 << 20
	// maxCheckBody is that of a reply to a check, which is one number.
	maxCheckBody = 1 << 20
	// maxToken is the longest part of a reply that is looked at as a whole: a name, a text, a
	// sample, or what an unknown key has.
	maxToken = 64 << 10
	// maxKeys is how many keys an object has at most, and how many things there are where
	// something else was expected. A series that was asked for has about five labels.
	maxKeys = 64
)

var errTooManyKeys = &sizeError{fmt.Sprintf("a reply with more than %d keys in one place", maxKeys)}

// sizeError says what of a reply is larger than is read.
type sizeError struct{ what string }

func (e *sizeError) Error() string { return "the reply is too large: " + e.what }

// keyError says that an object has a key twice, or in another case than the API has it:
// nobody knows which of them counts.
type keyError struct{ key string }

func (e *keyError) Error() string { return "the key " + e.key + " is not clear" }

// stream decodes a reply while it is read, so that none is ever in memory as a whole. It
// knows nothing of what the reply is about. What is JSON, but of another kind than was
// expected, is read past.
type stream struct {
	*json.Decoder
	odd    bool // there was something of another kind
	source bounded
}

// newStream returns a stream that fails after so many bytes.
func newStream(body io.Reader, most int64) *stream {
	s := &stream{source: bounded{body: body, most: most}}
	s.Decoder = json.NewDecoder(&s.source)
	s.source.used = s.InputOffset
	return s
}

// bounded is what a stream reads from.
type bounded struct {
	body io.Reader
	most int64
	read int64
	used func() int64 // how much the decoder is done with
	err  error        // why it ended before its end
}

// Read reads on, until something is too large.
func (s *bounded) Read(p []byte) (int, error) {
	switch {
	case s.err != nil:
		return 0, s.err
	case s.read > s.most:
		s.err = &sizeError{fmt.Sprintf("a reply of more than %d MiB", s.most>>20)}
		return 0, s.err
	case s.read-s.used() > maxToken:
		s.err = &sizeError{fmt.Sprintf("a value of more than %d KiB", maxToken>>10)}
		return 0, s.err
	}
	n, err := s.body.Read(p[:min(int64(len(p)), s.most+1-s.read)])
	s.read += int64(n)
	if err != nil && !errors.Is(err, io.EOF) {
		s.err = err
	}
	return n, err
}

// end makes sure that nothing comes any more.
func (s *stream) end() error {
	if _, err := s.Token(); !errors.Is(err, io.EOF) {
		return errNotPrometheus
	}
	return nil
}

// failed returns what is behind an error of the decoder.
func (s *stream) failed(err error) error {
	if s.source.err != nil {
		return s.source.err
	}
	var (
		syntax *json.SyntaxError
		kind   *json.UnmarshalTypeError
	)
	if errors.As(err, &syntax) || errors.As(err, &kind) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errNotPrometheus
	}
	return err
}

// object reads an object. For every key that is known it calls field, which reads the
// value. It reads past the others.
func (s *stream) object(known []string, field func(key int) error) error {
	var seen uint
	return s.keys(func(name string) error {
		key, err := find(known, name)
		switch {
		case err != nil:
			return err
		case key < 0:
			return s.skip()
		case seen&(1<<key) != 0:
			return &keyError{known[key]}
		}
		seen |= 1 << key
		return field(key)
	})
}

// find returns the index of a key, or -1 if it is not known.
func find(known []string, name string) (int, error) {
	for i, k := range known {
		if k == name {
			return i, nil
		}
		if strings.EqualFold(k, name) {
			return -1, &keyError{k}
		}
	}
	return -1, nil
}

// keys calls value for every key of an object, to read its value.
func (s *stream) keys(value func(name string) error) error {
	if open, err := s.open('{'); err != nil || !open {
		return err
	}
	for count := 1; s.More(); count++ {
		t, err := s.Token()
		if err != nil {
			return err
		}
		if count > maxKeys {
			return errTooManyKeys
		}
		name, _ := t.(string) // the decoder lets no other key through
		if err := value(name); err != nil {
			return err
		}
	}
	_, err := s.Token()
	return err
}

// list calls element for everything in a list, to read it.
func (s *stream) list(element func() error) error {
	if open, err := s.open('['); err != nil || !open {
		return err
	}
	return s.elements(element)
}

// elements reads the rest of a list that has begun.
func (s *stream) elements(element func() error) error {
	for s.More() {
		if err := element(); err != nil {
			return err
		}
	}
	_, err := s.Token()
	return err
}

// open reports whether an object or a list begins. It reads past anything else; null is nothing
// odd.
func (s *stream) open(delim json.Delim) (bool, error) {
	t, err := s.Token()
	if err != nil || t == nil {
		return false, err
	}
	if t == delim {
		return true, nil
	}
	s.odd = true
	return false, s.rest(t)
}

// rest reads past what a token has begun.
func (s *stream) rest(t json.Token) error {
	begun, ok := t.(json.Delim)
	if !ok {
		return nil
	}
	for count := 1; s.More(); count++ {
		if count > maxKeys {
			return errTooManyKeys
		}
		if begun == '{' {
			if _, err := s.Token(); err != nil {
				return err
			}
		}
		if err := s.skip(); err != nil {
			return err
		}
	}
	_, err := s.Token()
	return err
}

// skip reads past a value.
func (s *stream) skip() error { return s.Decode(&skipped{}) }

// skipped is a value that nobody looks at.
type skipped struct{}

// UnmarshalJSON takes anything.
func (*skipped) UnmarshalJSON([]byte) error { return nil }
