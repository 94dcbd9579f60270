// Package help answers: what does the help of a command show, and in how many columns?
//
// [Declare] puts a flag into a [Group], beside the definition of the flag, and [AddSections] gives the verbs of a
// command their order. [Overview], [Command] and [Usage] write the help. Templates of cobra are not used: they make
// the linker keep the methods of every type, a third of the binary.
package help

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
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

// Command writes the whole help of a command.
func Command(w io.Writer, c *cobra.Command, width int) error {
	about := c.Long
	if about == "" {
		about = c.Short
	}
	return write(w, append(wrapped(about, width), append([]string{""}, usage(c, width)...)...))
}

// Usage writes the help of a command without its description.
func Usage(w io.Writer, c *cobra.Command, width int) error { return write(w, usage(c, width)) }

func write(w io.Writer, lines []string) error {
	_, err := io.WriteString(w, strings.Join(lines, "\n")+"\n")
	return err
}

// usage is how a command is called: its examples, verbs and flags.
func usage(c *cobra.Command, width int) []string {
	lines := append([]string{"Usage:"}, fill("  ", useLine(c), width)...)
	if c.HasExample() {
		lines = append(lines, "", "Examples:")
		lines = append(lines, strings.Split(c.Example, "\n")...)
	}
	for _, section := range c.Groups() {
		lines = append(lines, "", section.Title)
		lines = append(lines, list(verbsOf(c, section), width)...)
	}
	if c.HasParent() {
		for _, each := range headings(c) {
			lines = append(lines, "", each.title+":")
			lines = append(lines, strings.Split(strings.TrimRight(each.flags.FlagUsagesWrapped(width), "\n"), "\n")...)
		}
	}
	lines = append(lines, "")
	if c.HasSubCommands() {
		lines = append(lines, fill("", fmt.Sprintf("Use \"%s COMMAND --help\" for one command.", c.CommandPath()), width)...)
	}
	return append(lines, fill("", fmt.Sprintf("Use \"%s options\" for the flags of all commands, such as --kubeconfig.", c.Root().CommandPath()), width)...)
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
