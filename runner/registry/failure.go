package registry

import (
	"fmt"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	"k8s.io/apimachinery/pkg/types"

	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/words"
	"github.com/openshift/update-preflight/runner/registry/credential"
)

type failures struct {
	rules    rules
	warnings []finding.Finding
}

// of returns the error when no place had the image. A missing credential comes
// first, then places that could not be reached: the image may be there. A source that
// cannot be reached comes after what its mirrors responded.
func (f failures) of(reference name.Reference, attempts []attempt) *Error {
	var texts []string
	by := map[finding.Reason]attempt{}
	for _, each := range attempts {
		texts = append(texts, each.String())
		reason := each.reason()
		if reason == ReasonRegistryUnreachable && !each.place.Mirror {
			reason = f.sourceUnreachable(reference, attempts)
		}
		if by[reason].place.Repository == "" {
			by[reason] = each
		}
	}
	failure := &Error{Message: strings.Join(texts, "; ")}
	for _, reason := range []finding.Reason{
		reasonRegistryUnauthorized, reasonCredentialHelperFailed, reasonRegistryUntrusted, ReasonRegistryUnreachable,
		reasonRegistryRateLimited, reasonRegistryError, reasonRepositoryNotMirrored, ReasonMirrorIncomplete,
		ReasonImageNotFound, ReasonRegistryBlocked,
	} {
		first, ok := by[reason]
		if !ok {
			continue
		}
		failure.Reason = reason
		if reason == reasonRepositoryNotMirrored {
			failure.Message += fmt.Sprintf("; no mirror set of the cluster has an entry for %q", first.place.Repository)
		}
		failure.Remediation, failure.Actions = f.remedy(reason, reference, first)
		return failure
	}
	return failure
}

// sourceUnreachable is the reason of a source that cannot be reached: its mirror sets
// that were read lack it, its mirrors lack the image, or it is to be reached itself.
func (f failures) sourceUnreachable(reference name.Reference, attempts []attempt) finding.Reason {
	mirrored := slices.ContainsFunc(attempts, func(t attempt) bool { return t.place.Mirror })
	responded := slices.ContainsFunc(attempts, func(t attempt) bool { return t.place.Mirror && status(t.err) != 0 })
	_, _, sets := f.rules.nearest(repositoryOf(reference), reference)
	_, unread := f.warned(reasonMirrorsUnreadable)
	switch {
	case responded:
		return ReasonMirrorIncomplete
	case sets && !mirrored && !unread:
		return reasonRepositoryNotMirrored
	}
	return ReasonRegistryUnreachable
}

func (f failures) warned(reason finding.Reason) (finding.Finding, bool) {
	at := slices.IndexFunc(f.warnings, func(w finding.Finding) bool { return w.Reason == reason.String() })
	if at < 0 {
		return finding.Finding{}, false
	}
	return f.warnings[at], true
}

func (f failures) remedy(reason finding.Reason, reference name.Reference, first attempt) (string, []finding.Action) {
	host, _, _ := strings.Cut(first.place.Repository, "/")
	switch reason {
	case reasonRegistryUnauthorized:
		return f.accountRemedy(host, first.credential)
	case reasonCredentialHelperFailed:
		return "Fix the credential helper, or log in without it.", []finding.Action{finding.OnThisMachine(login, host)}
	case reasonRegistryUntrusted:
		return fmt.Sprintf("Add the CA of the registry as key %q to a ConfigMap in openshift-config, and name that ConfigMap in spec.additionalTrustedCA.",
			strings.Replace(host, ":", "..", 1)), []finding.Action{finding.Change(editImageConfig)}
	case ReasonRegistryUnreachable:
		return f.reachRemedy(host, first.place)
	case reasonRepositoryNotMirrored:
		return f.entryRemedy(reference, first.place)
	case ReasonMirrorIncomplete:
		return fmt.Sprintf("Mirror the release again, or make %s reachable from here.", host), nil
	case reasonRegistryRateLimited:
		return "Wait as long as the registry requests, or log in with an account that has a higher limit.", []finding.Action{finding.OnThisMachine(login, host)}
	case reasonRegistryError:
		return fmt.Sprintf("Run the preflight again; if the error persists, ask the operators of %s.", host), nil
	case ReasonImageNotFound:
		return "Check the pull spec; on a mirror, mirror the release.", nil
	}
	return fmt.Sprintf("Mirror the image %s to a registry that the cluster may pull from, or allow its registry.", words.Line(reference.String(), maxText)),
		[]finding.Action{finding.Change(editImageConfig)}
}

// reachRemedy is the remedy for a place that cannot be reached, and has no mirror that responds.
func (f failures) reachRemedy(host string, place Place) (string, []finding.Action) {
	reach := fmt.Sprintf("Make %s reachable from here, with the right proxy and CA", host)
	if place.Mirror {
		return reach + ", then run the preflight again.", nil
	}
	if warning, ok := f.warned(reasonMirrorsUnreadable); ok {
		return reach + ", or obtain the permission to read the mirror sets: " + warning.Message + ".", []finding.Action{finding.Roles()}
	}
	return reach + ", or mirror the release to a registry that is, then run the preflight again.", nil
}

// entryRemedy is the remedy for a repository that no mirror set has.
func (f failures) entryRemedy(reference name.Reference, place Place) (string, []finding.Action) {
	set, mirror, _ := f.rules.nearest(place.Repository, reference)
	return fmt.Sprintf("Mirror the release to %s, and add the entry for %s to %s; if another repository has the release, name that one in the entry.", mirror, place.Repository, set),
		[]finding.Action{set.add(place.Repository, mirror)}
}

func (f failures) accountRemedy(host string, rejected credential.Credential) (string, []finding.Action) {
	again := finding.OnThisMachine(login, host)
	if rejected.Store.Secret != nil {
		return "Renew the entry of the cluster's pull secret, " + entryOf(*rejected.Store.Secret) + "; nodes are rejected too.", nil
	}
	if warning, ok := f.warned(reasonPullSecretUnreadable); ok {
		return "Obtain the permission to read the cluster's pull secret, or log in with an account that may pull the image. Without the pull secret: " +
			warning.Message + ".", []finding.Action{again}
	}
	if rejected.Key == "" {
		return "Log in with an account that may pull the image, and add an entry to the cluster's pull secret for the nodes, " + entryOf(globalPullSecret()) + ".", []finding.Action{again}
	}
	return "Log in with an account that may pull the image.", []finding.Action{again}
}

// maxText bounds the external text repeated for one response, in bytes: those of
// several mirrors must fit into one message.
const maxText = 200

// Error reports that no registry provided an image. It never holds a credential.
type Error struct {
	Reason finding.Reason
	// Message has the response of each place, in one line.
	Message string
	// Remediation is an imperative sentence, Actions are its commands.
	Remediation string
	Actions     []finding.Action
	// Err is the underlying error; nil when there is none or more than one.
	Err error
}

// Error returns the message and the underlying error in one line.
func (e *Error) Error() string {
	if e.Err == nil {
		return e.Message
	}
	return e.Message + ": " + words.Line(e.Err.Error(), maxText)
}

// Unwrap returns the underlying error.
func (e *Error) Unwrap() error { return e.Err }

// The commands of remedies.
const (
	editImageConfig = "oc edit image.config.openshift.io cluster"
	login           = "podman login %s"
)

func entryOf(secret types.NamespacedName) string {
	return fmt.Sprintf(".dockerconfigjson of Secret %s/%s", secret.Namespace, secret.Name)
}
