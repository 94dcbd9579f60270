// Package help answers: what does the help of a command show, and in how many columns?
//
// [Declare] puts a flag into a [Group], beside the definition of the flag, and [AddSections] gives the verbs of a
// command their order. [Overview], [Command] and [Usage] write the help. Templates of cobra are not used: they make
// the linker keep the methods of every type, a third of the binary.
package help

import (
	"cmp"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/openshift/update-preflight/cmd/oc-preflight/option"
)

// Overview writes the verbs of a program that most users need. With the prompt that follows, it fits a terminal of 80
// by 24 characters.
func Overview(w io.Writer, root *cobra.Command, width int) error {
	lines := fill("", root.Short, width)
	for _, section := range root.Groups() {
		if verbs := usual(verbsOf(root, section)); len(verbs) > 0 {
			lines = append(lines, section.Title)
			lines = append(lines, list(verbs, width)...)
		}
	}
	name := root.DisplayName()
	lines = append(lines, fill("", fmt.Sprintf("More: %s COMMAND -h; all commands: %[1]s help --all", name), width)...)
	return write(w, lines)
}

// Command writes the help of a command, with the first clause about each flag.
func Command(w io.Writer, c *cobra.Command, width int) error { return command(w, c, width, brief) }

// Whole writes the help of a command with all that is said about each flag.
func Whole(w io.Writer, c *cobra.Command, width int) error {
	return command(w, c, width, func(usage string) string { return usage })
}

func command(w io.Writer, c *cobra.Command, width int, of func(usage string) string) error {
	about := c.Long
	if about == "" {
		about = c.Short
	}
	return write(w, append(wrapped(about, width), append([]string{""}, usage(c, width, of)...)...))
}

// Usage writes the help of a command without its description.
func Usage(w io.Writer, c *cobra.Command, width int) error { return write(w, usage(c, width, brief)) }

func write(w io.Writer, lines []string) error {
	_, err := io.WriteString(w, strings.Join(lines, "\n")+"\n")
	return err
}

// usage is how a command is called: its examples, verbs and flags, of each what about makes of its usage.
func usage(c *cobra.Command, width int, about func(usage string) string) []string {
	lines := append([]string{"Usage:"}, fill("  ", useLine(c), width)...)
	if c.HasExample() {
		lines = append(lines, "", "Examples:")
		lines = append(lines, strings.Split(c.Example, "\n")...)
	}
	for _, section := range c.Groups() {
		lines = append(lines, "", section.Title)
		lines = append(lines, list(verbsOf(c, section), width)...)
	}
	if len(c.Groups()) == 0 && c.HasSubCommands() {
		lines = append(append(lines, "", "Commands:"), list(c.Commands(), width)...)
	}
	program, more := c.Root().CommandPath(), ""
	if c.HasParent() {
		for _, each := range headings(c) {
			more = fmt.Sprintf("Flags in full: %s help --all%s; f", program, strings.TrimPrefix(c.CommandPath(), program))
			lines = append(lines, "", each.title+":")
			lines = append(lines, flagLines(each.flags, width, about)...)
		}
	}
	lines = append(lines, "")
	if c.HasSubCommands() {
		lines = append(lines, fill("", fmt.Sprintf("Use \"%s COMMAND --help\" for one command.", c.CommandPath()), width)...)
	}
	return append(lines, fill("", cmp.Or(more, "F")+"lags of all commands, such as --kubeconfig: "+program+" options", width)...)
}

// clause is the first clause of a text, with what it depends on ("With --path: ") or its form ("N/M: ").
var clause = regexp.MustCompile(`^((?:With -\S+(?: \S+)?: |[A-Z/=]+: )?.*?)[.:;]( |$)`)

// brief is the first clause about a flag.
func brief(usage string) string {
	if found := clause.FindStringSubmatch(usage); found != nil {
		return found[1] + "."
	}
	return usage
}

// flagLines are the names of flags, each with what about makes of its usage, and its default.
func flagLines(flags *pflag.FlagSet, width int, about func(usage string) string) []string {
	var names, texts []string
	longest := 0
	flags.VisitAll(func(flag *pflag.Flag) {
		kind, usage := pflag.UnquoteUsage(flag)
		name := "--" + flag.Name
		if flag.Shorthand != "" {
			name = "-" + flag.Shorthand + ", " + name
		}
		if kind != "" && flag.NoOptDefVal != "" {
			kind = "[=" + kind + "]"
		} else if kind != "" {
			kind = " " + strings.ReplaceAll(kind, "stringArray", "strings")
		}
		if usage = about(usage); !slices.Contains([]string{"", "[]", "0", "0s", "false"}, flag.DefValue) {
			usage += " (default " + flag.DefValue + ")"
		}
		names, texts = append(names, name+kind), append(texts, usage)
		longest = max(longest, len(name+kind))
	})
	var lines []string
	for i, name := range names {
		lines = append(lines, fill(fmt.Sprintf("  %-*s  ", longest, name), texts[i], width)...)
	}
	return lines
}

// useLine is the form of a call.
func useLine(c *cobra.Command) string {
	if c.HasSubCommands() {
		return c.CommandPath() + " COMMAND"
	}
	return c.UseLine()
}

// list are the names of verbs, each with what it does.
func list(verbs []*cobra.Command, width int) []string {
	const least = len("conformance")
	longest := least
	for _, verb := range verbs {
		longest = max(longest, len(verb.Name()))
	}
	var lines []string
	for _, verb := range verbs {
		lines = append(lines, fill(fmt.Sprintf("  %-*s  ", longest, verb.Name()), verb.Short, width)...)
	}
	return lines
}

// own are the flags of a command that its help lists.
func own(c *cobra.Command) *pflag.FlagSet {
	listed := pflag.NewFlagSet(c.Name(), pflag.ContinueOnError)
	c.LocalNonPersistentFlags().VisitAll(func(flag *pflag.Flag) {
		if flag.Name != "help" && flag.Name != "version" && !flag.Hidden {
			listed.AddFlag(flag)
		}
	})
	return listed
}

// fewFlags are listed without groups.
const fewFlags = 8

// heading is a heading of flags, and the flags.
type heading struct {
	title string
	flags *pflag.FlagSet
}

// headings are the flags of a command by group; few flags have one heading.
func headings(c *cobra.Command) []heading {
	listed, count := own(c), 0
	listed.VisitAll(func(*pflag.Flag) { count++ })
	switch {
	case count == 0:
		return nil
	case count <= fewFlags:
		return []heading{{"Flags", listed}}
	}
	byGroup := map[option.Group]*pflag.FlagSet{}
	listed.VisitAll(func(flag *pflag.Flag) {
		group := option.Of(flag).Group
		if byGroup[group] == nil {
			byGroup[group] = pflag.NewFlagSet(string(group), pflag.ContinueOnError)
		}
		byGroup[group].AddFlag(flag)
	})
	var made []heading
	for _, group := range option.Groups() {
		if flags := byGroup[group]; flags != nil {
			made = append(made, heading{string(group), flags})
		}
	}
	if flags := byGroup[""]; flags != nil {
		made = append(made, heading{"Flags", flags})
	}
	return made
}

// Section has verbs of a command beneath a heading, in the order in which they are listed.
type Section struct {
	Title string
	Verbs []*cobra.Command
	// Rare are verbs that only the list of all has.
	Rare []*cobra.Command
}

// The annotations of a verb: its place in its section, and that only the list of all has it.
const (
	placeAnnotation = "preflight.openshift.io/help-place"
	rareAnnotation  = "preflight.openshift.io/help-rare"
)

// AddSections adds the verbs of the sections to c.
func AddSections(c *cobra.Command, sections ...Section) {
	for _, section := range sections {
		c.AddGroup(&cobra.Group{ID: section.Title, Title: section.Title + ":"})
		for i, verb := range slices.Concat(section.Verbs, section.Rare) {
			verb.GroupID = section.Title
			if verb.Annotations == nil {
				verb.Annotations = map[string]string{}
			}
			verb.Annotations[placeAnnotation] = strconv.Itoa(i)
			if i >= len(section.Verbs) {
				verb.Annotations[rareAnnotation] = "true"
			}
			c.AddCommand(verb)
		}
	}
}

// verbsOf are the verbs of a section, in order; those that cobra adds are last.
func verbsOf(c *cobra.Command, section *cobra.Group) []*cobra.Command {
	verbs := slices.DeleteFunc(slices.Clone(c.Commands()), func(verb *cobra.Command) bool {
		return verb.GroupID != section.ID || verb.Hidden || verb.Deprecated != ""
	})
	slices.SortStableFunc(verbs, func(a, b *cobra.Command) int { return cmp.Compare(placeOf(a), placeOf(b)) })
	return verbs
}

// usual are the verbs that are not rare; those that cobra adds are.
func usual(verbs []*cobra.Command) []*cobra.Command {
	return slices.DeleteFunc(slices.Clone(verbs),
		func(verb *cobra.Command) bool { return verb.Annotations[rareAnnotation] != "" || placeOf(verb) == last })
}

// last is the place of a verb that is in no section.
const last = 1000

// placeOf is the place of a verb in its section.
func placeOf(verb *cobra.Command) int {
	if at, err := strconv.Atoi(verb.Annotations[placeAnnotation]); err == nil {
		return at
	}
	return last
}

// wrapped are the lines of a text of paragraphs. A paragraph is one line; a line that begins with a space, such as one
// of an example, is not changed.
func wrapped(text string, width int) []string {
	var lines []string
	for paragraph := range strings.SplitSeq(strings.TrimSpace(text), "\n") {
		if strings.HasPrefix(paragraph, " ") {
			lines = append(lines, paragraph)
			continue
		}
		lines = append(lines, fill("", paragraph, width)...)
	}
	return lines
}

// fill breaks a text between words into lines of at most width columns. The first line follows first, the others begin
// with as many spaces; a longer word has a line of its own. Spaces between words are kept where no line ends.
func fill(first, text string, width int) []string {
	var lines []string
	indent := strings.Repeat(" ", utf8.RuneCountInString(first))
	line, empty := first, true
	for word := range strings.SplitSeq(text, " ") {
		switch {
		case empty:
			line += word
		case utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) <= width:
			line += " " + word
		default:
			lines, line = append(lines, line), indent+word
		}
		empty = false
	}
	return append(lines, line)
}
