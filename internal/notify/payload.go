package notify

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"text/template"
	"time"
)

// mostPayload bounds what is sent, in bytes.
const mostPayload = 64 << 10

// Built-in formats of the payload.
const (
	// FormatSlack is what Slack's incoming webhooks take, and those of Mattermost, Rocket.Chat
	// and others: {"text": "…"}.
	FormatSlack = "slack"
	// FormatJSON is the transition as it is, with its fields in camelCase.
	FormatJSON = "json"
)

var formats = map[string]string{
	FormatSlack: `{"text": {{ printf "%s *%s/%s* %s%s" (mark .Level) (slack .Namespace) (slack .Name) (slack .Phase) (slack .Rest) | json }}}`,
	FormatJSON: `{"namespace": {{ json .Namespace }}, "name": {{ json .Name }}, "phase": {{ json .Phase }}, "from": {{ json .From }}, ` +
		`"level": {{ json .Level }}, "reason": {{ json .Reason }}, "message": {{ json .Message }}, "revision": {{ json .Revision }}, ` +
		`"attempt": {{ json .Attempt }}, "stage": {{ json .Stage }}, "share": {{ json .Share }}, "at": {{ json .At }}}`,
}

// functions are what templates have beside those of text/template.
var functions = template.FuncMap{
	// json writes a value as JSON, quotes included.
	"json": func(v any) (string, error) {
		var b bytes.Buffer
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(false)
		if err := e.Encode(v); err != nil {
			return "", err
		}
		return strings.TrimSpace(b.String()), nil
	},
	// slack writes a text so that Slack takes nothing in it for markup.
	"slack": strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace,
	// mark is a sign for a level.
	"mark": func(l Level) string {
		switch l {
		case LevelWarning:
			return ":warning:"
		case LevelAction:
			return ":raised_hand:"
		case LevelInfo:
		}
		return ":information_source:"
	},
}

// Payload makes the body of a notification.
type Payload struct{ template *template.Template }

// Format returns a built-in payload: FormatSlack or FormatJSON.
func Format(name string) (*Payload, error) {
	text, ok := formats[name]
	if !ok {
		return nil, fmt.Errorf("%q is no format: use %s or %s, or give a template", name, FormatSlack, FormatJSON)
	}
	return Template(text)
}

// Template returns a payload of one's own: a template of Go's text/template that writes
// JSON about a Transition. It is tried out at once.
func Template(text string) (*Payload, error) {
	t, err := template.New("payload").Option("missingkey=error").Funcs(functions).Parse(text)
	if err != nil {
		return nil, err
	}
	p := &Payload{template: t}
	example := Transition{
		Namespace: "shop", Name: "checkout", Phase: "RolledBack", From: "Progressing", Reason: "Unhealthy", Level: LevelWarning,
		Message: `a "message" with <quotes>, a \ and a` + "\nsecond line", Revision: "2.4.1", Attempt: 1, Stage: "2/6", Share: "0", At: time.Unix(0, 0).UTC(),
	}
	if _, err := p.body(example); err != nil {
		return nil, err
	}
	return p, nil
}

// body is the payload for a transition. It is JSON.
func (p *Payload) body(t Transition) ([]byte, error) {
	var b sheet
	if err := p.template.Execute(&b, t); err != nil {
		return nil, err
	}
	if !json.Valid(b.text.Bytes()) {
		return nil, errors.New("the template does not write JSON: put every value through json, as in {\"text\": {{ json .Message }}}")
	}
	return b.text.Bytes(), nil
}

// sheet takes what a template writes, and ends the template once that is too much.
type sheet struct{ text bytes.Buffer }

func (s *sheet) Write(part []byte) (int, error) {
	if s.text.Len()+len(part) > mostPayload {
		return 0, fmt.Errorf("the template writes more than %d bytes", mostPayload)
	}
	return s.text.Write(part)
}
