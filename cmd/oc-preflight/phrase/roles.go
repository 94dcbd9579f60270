package phrase

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/openshift/update-preflight/cmd/oc-preflight/cli"
	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/finding"
)

// askTime bounds the request for the user after an interruption: a command ends within two seconds of a signal.
const askTime = time.Second

// requesterKey is the key of the function that WithRequester adds to a context.
type requesterKey struct{}

// WithRequester is the context of a command with who makes its requests. ask is called at most once,
// and only where a permission is missing.
func WithRequester(ctx context.Context, ask func(context.Context) cli.Requester) context.Context {
	return context.WithValue(ctx, requesterKey{}, sync.OnceValue(func() cli.Requester {
		if ctx.Err() == nil {
			return ask(ctx)
		}
		asking, cancel := context.WithTimeout(context.WithoutCancel(ctx), askTime) // a report of an interrupted run has the command, too
		defer cancel()
		return ask(asking)
	}))
}

// RequesterOf is who makes the requests of a command with this context; zero where it is unknown.
func RequesterOf(ctx context.Context) cli.Requester {
	if ctx == nil {
		return cli.Requester{}
	}
	if ask, ok := ctx.Value(requesterKey{}).(func() cli.Requester); ok {
		return ask()
	}
	return cli.Requester{}
}

// Roles is the command by which an administrator prints the roles of a verb, bound to the user who lacks
// them. It has none of the flags by which that user reaches the cluster.
func (p Phrase) Roles(verb string, flags Flags, user string) finding.Action {
	made := p.Verb("auth "+verb, nil, flags, binding(user))
	made.Operation = finding.Local // another user types it
	return made
}

// rolesOfFinding is the command for a finding about a missing permission.
func rolesOfFinding(p Phrase, user string) finding.Action {
	if user == "" && p.context != nil {
		user = RequesterOf(p.context()).User
	}
	verb, flags := p.verb, Flags(nil)
	if !slices.Contains([]string{"targets", "plan", "drain-plan", "checks", "verify"}, verb) {
		verb, flags = "run", append(flags, p.Given.only("images")...)
		if len(p.Target) > 0 && strings.HasPrefix(p.Target[0].Name, "to") { // no other flag of a target is one of "auth"
			flags = append(slices.Clone(p.Target), flags...)
		}
	}
	flags = append(flags, p.Given.only("rehearse")...)
	return p.Roles(verb, append(flags, p.Given.only(hostedCluster)...), user)
}

// binding is the flag that binds roles to a user; none for one who has no roles of their own.
func binding(user string) Flags {
	if subject := access.Subject(user); subject != "" {
		return Flags{{Name: "bind", Values: []string{subject}}}
	}
	return nil
}
