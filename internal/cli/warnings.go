package cli

import (
	"fmt"
	"io"

	"github.com/spf13/pflag"

	"github.com/weightedrollout/weightedrollout/internal/cli/schedule"
)

// bindStrict adds the flag that makes warnings errors.
func bindStrict(fs *pflag.FlagSet, strict *bool) {
	fs.BoolVar(strict, "strict", false, "Fail if there is any warning.")
}

// warn writes the warnings of a plan, and fails if there are any and none is allowed.
func warn(w io.Writer, warnings []schedule.Warning, strict bool) error {
	for _, warning := range warnings {
		_, _ = fmt.Fprintf(w, "Warning: %s\n", clean(warning.String()))
	}
	if strict && len(warnings) > 0 {
		are := "are"
		if len(warnings) == 1 {
			are = "is"
		}
		return fmt.Errorf("there %s %s, and --strict was given", are, plural(len(warnings), "warning", "warnings"))
	}
	return nil
}
