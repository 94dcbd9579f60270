// Package role answers: which permissions does a command need, and in which cluster?
//
// Each command declares its [Role] where it is made, with [List.Declare]; "auth" prints them.
package role

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"

	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/hypershift"
	"github.com/openshift/update-preflight/runner/image"
	"github.com/openshift/update-preflight/runner/launch/place"
	"github.com/openshift/update-preflight/runner/rehearsal"
)

// Request limits the roles of a command.
type Request struct {
	// Images is how a run checks images.
	Images image.Mode
	// Rehearsal is whether a run rehearses the writes of the update.
	Rehearsal rehearsal.Mode
	// Release are the permissions that the checks of one release need; nil for any release.
	Release *access.Needs
	// Placement selects clusters of a hub; the zero value is any. Keys is the ConfigMap of the hub with public keys; the zero
	// value is none.
	Placement, Keys types.NamespacedName
}

// Role has the permissions of a command.
type Role struct {
	// Needs are the permissions in the cluster of the connection. Nil is a command for many clusters: each needs the
	// roles of the command of that name for one cluster, and Members lists them.
	Needs   func(Request) access.Needs
	Members []Members
	// Remarks are the consequences that an administrator must know before binding the roles; nil for none.
	Remarks func(Request) []string
	// Flags are the flags of the command on which its roles depend; "auth" has them, too.
	Flags []string
	// Management are the permissions in the management cluster of a hosted cluster, beside those to reach its guest.
	Management func(hosted types.NamespacedName) Part
}

// Part are permissions in one cluster, and what an administrator must know of them.
type Part struct {
	Needs   access.Needs
	Remarks []string
}

// Members are the permissions in the cluster whose objects name the clusters of a fleet, where Flag selects them. Cluster
// is that cluster in words, such as "the management cluster".
type Members struct {
	Flag, Cluster string
	Part
}

// Named is the role of a command by its name, such as "run" or "fleet-hub".
type Named struct {
	Name string
	Role
}

// Always are needs that do not depend on the request.
func Always(needs func() access.Needs) func(Request) access.Needs {
	return func(Request) access.Needs { return needs() }
}

// NoMore is the part of a command in a management cluster that needs no more there than to reach the guest.
func NoMore(types.NamespacedName) Part { return Part{} }

// InControlPlane is the part of a command in the namespace of the control plane.
func InControlPlane(needs func() access.Needs) func(types.NamespacedName) Part {
	return func(of types.NamespacedName) Part {
		return Part{Needs: place.Confine(needs(), hypershift.ControlPlaneNamespace(of.Namespace, of.Name))}
	}
}

// The consequences of roles that several commands have.
const (
	// JobsRunAs is about the permission to create Jobs.
	JobsRunAs = "A user who may create Jobs in a namespace can run them as any of its ServiceAccounts."
	// CopiesGrant is about checks with existing ServiceAccounts.
	CopiesGrant = "A check with an existing ServiceAccount runs as a temporary copy with the read access of the original, which the " +
		"user must have, too; for this, roles are created in any namespace."
	// Given is about the roles that checks bring, in a release or in a manifest.
	Given = "The API server refuses to create a role with permissions that its creator does not have, so add the rules of the roles in " +
		"%s."
)

// List are the roles of all commands, in the order of the help. The zero value is empty.
type List struct{ declared []declared }

type declared struct {
	verb *cobra.Command
	role Role
}

// Declare adds the role of a command.
func (l *List) Declare(verb *cobra.Command, role Role) {
	l.declared = append(l.declared, declared{verb: verb, role: role})
}

// Fleet begins the names of the roles of commands for many clusters.
const Fleet = "fleet-"

// All are the roles with needs of their own.
func (l *List) All() []Named {
	var all []Named
	for _, each := range l.declared {
		if each.role.Needs != nil {
			all = append(all, Named{Name: nameOf(each.verb), Role: each.role})
		}
	}
	return all
}

// Find is the role of this name; false for none.
func (l *List) Find(name string) (Named, bool) {
	for _, each := range l.declared {
		if nameOf(each.verb) == name {
			return Named{Name: name, Role: each.role}, true
		}
	}
	return Named{}, false
}

// Of is the role of a command; false for a command without one.
func (l *List) Of(verb *cobra.Command) (Named, bool) { return l.Find(nameOf(verb)) }

// With returns the names of the roles that depend on a flag. A command for many clusters has the name of the command for
// one.
func (l *List) With(flag string) []string {
	var names []string
	for _, each := range l.declared {
		if slices.Contains(each.role.Flags, flag) {
			name := nameOf(each.verb)
			if each.role.Needs == nil {
				name = strings.TrimPrefix(name, Fleet)
			}
			names = append(names, name)
		}
	}
	return names
}

// Sources are the flags that select the clusters of a fleet by objects, with what they need.
func (l *List) Sources() []Members {
	for _, each := range l.declared {
		if len(each.role.Members) > 0 { // all commands for many clusters have the same
			return each.role.Members
		}
	}
	return nil
}

// nameOf is the name of a command in the names of its roles, also before the command is one of the program.
func nameOf(verb *cobra.Command) string {
	name := verb.Name()
	for c := verb.Parent(); c != nil && c.Annotations[cobra.CommandDisplayNameAnnotation] == ""; c = c.Parent() {
		name = c.Name() + "-" + name
	}
	return name
}
