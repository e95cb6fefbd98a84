// Package yamltext turns a text of YAML documents or JSON objects into JSON, within
// bounds: a short text can stand for a very long one by aliases or by documents.
package yamltext

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	goyaml "go.yaml.in/yaml/v3"
	"sigs.k8s.io/yaml"
)

const (
	// MaxBytes is the longest text that is read, with its aliases followed: the API
	// server takes no longer request.
	MaxBytes = 3 << 20
	// MaxDocuments is the largest number of documents, empty ones too.
	MaxDocuments = 1000
)

// Document is one document of a text. What is empty is left out.
type Document struct {
	// JSON is what it holds. An object may hold a field more than once, if it was JSON.
	JSON []byte
	// Repeated has a sentence for each field of a YAML mapping that is given more than
	// once, with its line in the text.
	Repeated []string
}

// ErrTooLong says that a text has more than MaxBytes.
var ErrTooLong = fmt.Errorf("longer than %d MiB", MaxBytes>>20)

// Load reads a text. It fails with ErrTooLong on one that is longer than MaxBytes.
func Load(r io.Reader) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(r, MaxBytes+1))
	if err == nil && len(text) > MaxBytes {
		err = ErrTooLong
	}
	return text, err
}

// Documents reads the documents of a text. It fails on what is neither YAML nor JSON,
// on more than MaxDocuments, and on aliases that make the text longer than MaxBytes.
func Documents(text []byte) ([]Document, error) {
	text = bytes.TrimPrefix(text, []byte("\ufeff"))
	parts := split(text)
	switch {
	case len(parts) > MaxDocuments:
		return nil, errTooMany
	case len(parts) == 1 && isJSON(text):
		// Several JSON objects are no YAML, and JSON may be indented by tabs.
		return fromJSON(text)
	}
	var all []Document
	aliases := aliases{room: MaxBytes - len(text)}
	for _, p := range parts {
		d, err := p.read(&aliases)
		if err != nil {
			return nil, err
		}
		if d.JSON != nil {
			all = append(all, d)
		}
	}
	return all, nil
}

var errTooMany = fmt.Errorf("there are more than %d documents: give only the file that is meant", MaxDocuments)

// isJSON says whether a text begins with a JSON object. A flow mapping of YAML
// begins with a brace as well.
func isJSON(text []byte) bool {
	var first json.RawMessage
	err := json.NewDecoder(bytes.NewReader(text)).Decode(&first)
	return err == nil && bytes.HasPrefix(first, []byte("{"))
}

func fromJSON(text []byte) ([]Document, error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	var all []Document
	for {
		var raw json.RawMessage
		if err := decoder.Decode(&raw); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, fmt.Errorf("no valid JSON after byte %d: %w", decoder.InputOffset(), err)
		}
		if len(all) == MaxDocuments {
			return nil, errTooMany
		}
		all = append(all, Document{JSON: raw})
	}
}

// part is the text of one YAML document.
type part struct {
	text []byte
	// before is the number of lines before it.
	before int
}

// split cuts a text at the lines that begin or end documents, since the parser reads
// one and passes over the rest. It stops after MaxDocuments+1 parts.
func split(text []byte) []part {
	var parts []part
	start, at, before, lines := 0, 0, 0, 0
	for line := range bytes.Lines(text) {
		if separates(line) {
			parts = append(parts, part{text[start:at], before})
			if len(parts) > MaxDocuments {
				return parts
			}
			// What follows the dashes is part of the document.
			rest := bytes.TrimLeft(line[len("---"):], " \t")
			start, before = at+len(line)-len(rest), lines
		}
		at += len(line)
		lines++
	}
	return append(parts, part{text[start:], before})
}

// separates says whether a line is the mark of a document's begin or end.
func separates(line []byte) bool {
	return (bytes.HasPrefix(line, []byte("---")) || bytes.HasPrefix(line, []byte("..."))) && (len(line) == 3 || strings.ContainsRune(" \t\r\n", rune(line[3])))
}

// read reads one YAML document; without JSON it is empty.
func (p part) read(a *aliases) (Document, error) {
	repeated, err := p.check(a)
	if err != nil {
		return Document{}, err
	}
	asJSON, err := yaml.YAMLToJSON(p.text)
	if err != nil {
		return Document{}, fmt.Errorf("no valid YAML: %s", p.plain(err))
	}
	if bytes.Equal(asJSON, []byte("null")) {
		return Document{}, nil
	}
	return Document{JSON: asJSON, Repeated: repeated}, nil
}

// check looks at the text as it is written, with no alias followed, and says what is
// repeated.
func (p part) check(a *aliases) ([]string, error) {
	var root goyaml.Node
	if err := goyaml.Unmarshal(p.text, &root); err != nil {
		return nil, fmt.Errorf("no valid YAML: %s", p.plain(syntax(p.text, err)))
	}
	a.size(&root)
	switch {
	case a.loop != "":
		return nil, fmt.Errorf("no valid YAML: the anchor %s contains itself", Clip(a.loop))
	case a.room < 0:
		return nil, fmt.Errorf("with its aliases followed the text is longer than %d MiB: write fewer aliases, or shorter anchors", MaxBytes>>20)
	}
	return repeated(&root, p.before), nil
}

// syntax returns the error that counts lines better: that of the parser which makes
// the JSON. It follows aliases at once, so it is asked only where there are none.
func syntax(text []byte, err error) error {
	if bytes.ContainsRune(text, '*') {
		return err
	}
	if _, better := yaml.YAMLToJSON(text); better != nil {
		return better
	}
	return err
}

// plain takes the parser's own preamble from an error, and counts its lines from the
// beginning of the text.
func (p part) plain(err error) string {
	text := err.Error()
	for _, preamble := range []string{"error converting YAML to JSON: ", "yaml: ", "unmarshal errors:\n"} {
		text = strings.TrimPrefix(text, preamble)
	}
	lines := strings.Split(strings.TrimSpace(text), "\n")
	for i, line := range lines {
		line = strings.TrimSpace(line)
		number, rest, _ := strings.Cut(strings.TrimPrefix(line, "line "), ":")
		if n, err := strconv.Atoi(number); err == nil && strings.HasPrefix(line, "line ") {
			line = fmt.Sprintf("line %d:%s", n+p.before, rest)
		}
		lines[i] = line
	}
	return Clip(strings.Join(lines, "; "))
}
