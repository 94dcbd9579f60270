// Package question answers: when do two command lines ask the same about the same clusters?
//
// [Key] is equal for command lines that ask the same: by the effects of their flags (package option).
package question

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/openshift/update-preflight/cmd/oc-preflight/option"
)

// Key is equal for calls of a command that ask the same about the same clusters: by its flags, those
// with defaults as well, and by the content of the files that they name. A flag without an effect counts
// as one that changes the answer. Files that are not regular, or too large, are an error.
func Key(c *cobra.Command) (string, error) {
	sum := sha256.New()
	fmt.Fprintf(sum, "%s\n", c.Name())
	var failed error
	c.Flags().VisitAll(func(flag *pflag.Flag) {
		if err := write(sum, flag); err != nil && failed == nil {
			failed = fmt.Errorf("--%s: %w", flag.Name, err)
		}
	})
	return hex.EncodeToString(sum.Sum(nil)), failed
}

// write writes what a flag adds to the key.
func write(sum io.Writer, flag *pflag.Flag) error {
	switch option.Of(flag).Effect {
	case option.OnDisplay:
		return nil
	case option.OnAnswerByContent:
		fmt.Fprintf(sum, "%s\n", flag.Name)
		return writeContents(sum, values(flag))
	case option.OnAnswer, option.OnClusters:
	}
	_, err := fmt.Fprintf(sum, "%s=%q\n", flag.Name, flag.Value.String())
	return err
}

// values are the values of a flag.
func values(flag *pflag.Flag) []string {
	if list, ok := flag.Value.(pflag.SliceValue); ok {
		return list.GetSlice()
	}
	return []string{flag.Value.String()}
}
