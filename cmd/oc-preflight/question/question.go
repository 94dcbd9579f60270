// Package question answers: when do two command lines ask the same about the same clusters?
//
// [Declare] gives a flag its [Effect], beside the definition of the flag. [Key] is equal for command
// lines that ask the same, and [Undeclared] names the flags that have no effect yet.
package question

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Effect is what another value of a flag changes.
type Effect string

// The effects. Every one but OnDisplay is part of the [Key].
const (
	// OnAnswer means that another value may give another answer about a cluster.
	OnAnswer Effect = "answer"
	// OnAnswerByContent is OnAnswer for a flag whose values may be paths: the content of the files counts
	// instead of the paths.
	OnAnswerByContent Effect = "answerByContent"
	// OnClusters means that other clusters are asked, or by another user.
	OnClusters Effect = "clusters"
	// OnDisplay means that the answer is only requested, shown or kept in another way.
	OnDisplay Effect = "display"
)

// annotation is the annotation of a flag with its effect.
const annotation = "preflight.openshift.io/effect"

// Declare gives flags that are defined their effect. A name that is not defined is a panic.
func Declare(flags *pflag.FlagSet, effect Effect, names ...string) {
	for _, name := range names {
		if err := flags.SetAnnotation(name, annotation, []string{string(effect)}); err != nil {
			panic(err)
		}
	}
}

// effectOf is the effect of a flag; empty where none is declared.
func effectOf(flag *pflag.Flag) Effect {
	if declared := flag.Annotations[annotation]; len(declared) == 1 {
		return Effect(declared[0])
	}
	return ""
}

// ChangesAnswer reports whether another value of a flag may change the answer about a cluster: also where it is
// not declared.
func ChangesAnswer(flag *pflag.Flag) bool {
	effect := effectOf(flag)
	return effect != OnDisplay && effect != OnClusters
}

// Undeclared are the names of the flags of a command without an effect, sorted; --help is not one of them.
func Undeclared(c *cobra.Command) []string {
	var names []string
	visit := func(flag *pflag.Flag) {
		if effectOf(flag) == "" && flag.Name != "help" {
			names = append(names, flag.Name)
		}
	}
	c.LocalFlags().VisitAll(visit)
	c.InheritedFlags().VisitAll(visit)
	slices.Sort(names)
	return slices.Compact(names)
}

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
	switch effectOf(flag) {
	case OnDisplay:
		return nil
	case OnAnswerByContent:
		fmt.Fprintf(sum, "%s\n", flag.Name)
		return writeContents(sum, values(flag))
	case OnAnswer, OnClusters:
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
