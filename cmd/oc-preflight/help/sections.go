package help

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/spf13/cobra"
)

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
	return slices.DeleteFunc(slices.Clone(verbs), func(verb *cobra.Command) bool { return verb.Annotations[rareAnnotation] != "" || placeOf(verb) == last })
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
