package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"
	"sigs.k8s.io/yaml"
)

const (
	formatTable = "table"
	formatJSON  = "json"
	formatYAML  = "yaml"

	// defaultWidth is that of output that is no terminal's; minWidth is the narrowest
	// that tables are made for, and maxWidth the widest.
	defaultWidth = 100
	minWidth     = 60
	maxWidth     = 1000
)

var formats = []string{formatTable, formatJSON, formatYAML}

// output says how to show a result.
type output struct {
	format  string
	formats []string
	width   int
	noColor bool
}

func (o *output) bind(cmd *cobra.Command) { o.bindFormats(cmd, formats) }

// bindFormats is bind for a command with formats of its own, of which the first is the
// default.
func (o *output) bindFormats(cmd *cobra.Command, formats []string) {
	o.formats = formats
	fs := cmd.Flags()
	fs.StringVarP(&o.format, "output", "o", formats[0], "Format of the output: "+strings.Join(formats, ", ")+".")
	o.bindScreen(cmd)
	complete(cmd, "output", formats)
}

// bindScreen adds the flags of a command that only draws.
func (o *output) bindScreen(cmd *cobra.Command) {
	fs := cmd.Flags()
	fs.IntVar(&o.width, "width", 0, fmt.Sprintf("Width of the output in columns, %d to %d. Default: the terminal's, or %d where there is none.", minWidth, maxWidth, defaultWidth))
	fs.BoolVar(&o.noColor, "no-color", false, "Write no colours. They are left out as well with the environment variable NO_COLOR, and where the output is no terminal.")
}

// complete lets the shell complete the value of a flag.
func complete(cmd *cobra.Command, flag string, values []string) {
	// It fails only on a flag that does not exist or is completed already.
	if err := cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)); err != nil {
		cmd.PrintErrln(err)
	}
}

func (o *output) validate() error {
	if len(o.formats) > 0 && !slices.Contains(o.formats, o.format) {
		return fmt.Errorf("there is no output format %q: use one of %s", o.format, strings.Join(o.formats, ", "))
	}
	if o.width != 0 && (o.width < minWidth || o.width > maxWidth) {
		return fmt.Errorf("--width %d is out of range: give %d to %d", o.width, minWidth, maxWidth)
	}
	return nil
}

// write shows a result: as data, or by the function that draws it.
func (o *output) write(w io.Writer, result any, draw func(*screen)) error {
	var text []byte
	var err error
	switch o.format {
	case formatJSON:
		text, err = json.MarshalIndent(result, "", "  ")
		text = append(text, '\n')
	case formatYAML:
		text, err = yaml.Marshal(result)
	default:
		s := o.screen(w)
		draw(s)
		text = []byte(s.text.String())
	}
	if err != nil {
		return fmt.Errorf("write the result as %s: %w", o.format, err)
	}
	if _, err := w.Write(text); err != nil {
		return fmt.Errorf("write the output: %w", err)
	}
	return nil
}

// screen returns a screen as wide as the terminal, if it is one.
func (o *output) screen(w io.Writer) *screen {
	s := &screen{width: o.width}
	file, _ := w.(*os.File)
	terminal := isTerminal(w)
	if s.width == 0 {
		s.width = defaultWidth
		if terminal {
			if columns, _, err := term.GetSize(int(file.Fd())); err == nil && columns > 0 {
				s.width = min(max(columns, minWidth), maxWidth)
			}
		}
	}
	s.color = terminal && !o.noColor && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
	return s
}
