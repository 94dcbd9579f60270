package registry

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
	"k8s.io/apimachinery/pkg/types"

	"github.com/openshift/update-preflight/collector"
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

// sourceUnreachable returns the reason of a source that cannot be reached: the mirror sets that were read do not cover
// it, its mirrors do not have the image, or the source itself must be reached.
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
		return fmt.Sprintf("Add the CA of the registry as key %q to a ConfigMap in openshift-config, and name that "+
			"ConfigMap in spec.additionalTrustedCA.",
			strings.Replace(host, ":", "..", 1)), []finding.Action{finding.Change(editImageConfig)}
	case ReasonRegistryUnreachable:
		return f.reachRemedy(host, first.place)
	case reasonRepositoryNotMirrored:
		return f.entryRemedy(reference, first.place)
	case ReasonMirrorIncomplete:
		return fmt.Sprintf("Mirror the release again, or make %s reachable from here.", host), nil
	case reasonRegistryRateLimited:
		return "Wait as long as the registry requests, or log in with an account that has a higher limit.",
			[]finding.Action{finding.OnThisMachine(login, host)}
	case reasonRegistryError:
		return fmt.Sprintf("Run the preflight again; if the error persists, ask the operators of %s.", host), nil
	case ReasonImageNotFound:
		return "Check the pull spec; on a mirror, mirror the release.", nil
	}
	return fmt.Sprintf("Mirror the image %s to a registry that the cluster may pull from, or allow its registry.",
			words.Line(reference.String(), maxText)),
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
	return fmt.Sprintf("Mirror the release to %s, and add the entry for %s to %s; if another repository contains the "+
			"release, name that one in the entry.", mirror, place.Repository, set),
		[]finding.Action{set.add(place.Repository, mirror)}
}

func (f failures) accountRemedy(host string, rejected credential.Credential) (string, []finding.Action) {
	again := finding.OnThisMachine(login, host)
	if rejected.Store.Secret != nil {
		return "Renew the entry of the cluster's pull secret, " + entryOf(*rejected.Store.Secret) + "; nodes are " +
			"rejected too.", nil
	}
	if warning, ok := f.warned(reasonPullSecretUnreadable); ok {
		return "Obtain the permission to read the cluster's pull secret, or log in with an account that may pull the image. Without the " +
			"pull secret: " +
			warning.Message + ".", []finding.Action{again}
	}
	if rejected.Key == "" {
		return "Log in with an account that may pull the image, and add an entry to the cluster's pull secret for the nodes, " +
			entryOf(globalPullSecret()) + ".", []finding.Action{again}
	}
	return "Log in with an account that may pull the image.", []finding.Action{again}
}

// maxText bounds the external text repeated for one response, in bytes: the texts of several mirrors must fit into one
// message.
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

// The reasons for which a registry or its configuration in the cluster cannot be used.
var (
	reasonInvalidPullSpec = finding.NewReason("InvalidPullSpec", finding.Explanation{
		Meaning: "The name of an image cannot be parsed.",
		Cause:   "The pull spec is malformed.",
		Remedy:  "Specify the image as REPOSITORY@sha256:DIGEST.",
	})
	ReasonRegistryNotAllowed = finding.NewReason("RegistryNotAllowed", finding.Explanation{
		Meaning: "The registry of an image is not allowed in the cluster.",
		Cause:   "allowedRegistries of image.config.openshift.io \"cluster\" does not list it.",
		Remedy:  "Allow the registry: oc edit image.config.openshift.io cluster.",
	})
	reasonRegistryUnauthorized = finding.NewReason("RegistryUnauthorized", finding.Explanation{
		Meaning: "A registry rejects the credentials.",
		Cause:   "The credential is missing, has expired, or may not pull the image.",
		Remedy:  "Renew the entry of the registry in Secret openshift-config/pull-secret, or log in: podman login HOST.",
	})
	reasonCredentialHelperFailed = finding.NewReason("CredentialHelperFailed", finding.Explanation{
		Meaning: "A credential helper on this machine fails.",
		Cause:   "The program docker-credential-NAME is missing or failed.",
		Remedy:  "Fix the helper, or log in without it: podman login HOST.",
	})
	reasonRegistryUntrusted = finding.NewReason("RegistryUntrusted", finding.Explanation{
		Meaning: "The certificate of a registry is not trusted.",
		Cause:   "The cluster does not trust the CA of the registry.",
		Remedy:  "Add the CA to the ConfigMap named in spec.additionalTrustedCA: oc edit image.config.openshift.io cluster.",
	})
	ReasonRegistryUnreachable = finding.NewReason("RegistryUnreachable", finding.Explanation{
		Meaning: "A registry cannot be reached.",
		Cause:   "DNS, the network, the proxy or a firewall prevents the connection.",
		Remedy: "Make the registry reachable from here, or mirror the release, then run the preflight again: oc adm " +
			"release mirror.",
	})
	reasonRepositoryNotMirrored = finding.NewReason("RepositoryNotMirrored", finding.Explanation{
		Meaning: "The registry of an image cannot be reached, and no mirror set of the cluster has an entry for its " +
			"repository.",
		Cause:  "The mirror sets do not cover the repository of the release.",
		Remedy: "Mirror the release, and add the entry to a mirror set: oc edit imagedigestmirrorset NAME.",
	})
	ReasonMirrorIncomplete = finding.NewReason("MirrorIncomplete", finding.Explanation{
		Meaning: "A mirror does not have an image, and the registry of the image cannot be reached.",
		Cause:   "The release was not mirrored, or only partly.",
		Remedy:  "Mirror the release again: oc adm release mirror.",
	})
	reasonRegistryRateLimited = finding.NewReason("RegistryRateLimited", finding.Explanation{
		Meaning: "A registry limits the rate of pulls.",
		Cause:   "The account pulls too often.",
		Remedy:  "Wait, or log in with another account: podman login HOST.",
	})
	reasonRegistryError = finding.NewReason("RegistryError", finding.Explanation{
		Meaning: "A registry responds with an error.",
		Cause:   "The registry is failing.",
		Remedy:  "Run the preflight again; if the error persists, ask the operators of the registry.",
	})
	ReasonImageNotFound = finding.NewReason("ImageNotFound", finding.Explanation{
		Meaning: "No registry has the image.",
		Cause:   "The pull spec is wrong, or the image was not mirrored.",
		Remedy:  "Check the pull spec, and mirror the release: oc adm release mirror.",
	})
	ReasonRegistryBlocked = finding.NewReason("RegistryBlocked", finding.Explanation{
		Meaning: "The cluster may not pull from any repository of the image.",
		Cause: "It is excluded by blockedRegistries of image.config.openshift.io \"cluster\", or by a " +
			"mirrorSourcePolicy of NeverContactSource.",
		Remedy: "Mirror the image to an allowed registry, or change the policy: oc edit image.config.openshift.io cluster.",
	})
	reasonPullSecretUnreadable = finding.NewReason("PullSecretUnreadable", finding.Explanation{
		Meaning: "The cluster's pull secret cannot be used.",
		Cause:   "A permission is missing, or the Secret is malformed.",
		Remedy: "Obtain get on Secret openshift-config/pull-secret, or correct it: oc set data secret/pull-secret -n " +
			"openshift-config --from-file=.dockerconfigjson=FILE.",
	})
	reasonMirrorsUnreadable = finding.NewReason("MirrorsUnreadable", finding.Explanation{
		Meaning: "The cluster's mirror sets cannot be read.",
		Cause:   "A permission is missing, or the API server did not respond.",
		Remedy:  "Obtain list on the objects in the message.",
	})
	reasonRegistrySourcesUnreadable = finding.NewReason("RegistrySourcesUnreadable", finding.Explanation{
		Meaning: "The cluster's registry configuration cannot be read.",
		Cause:   "A permission is missing, or the API server did not respond.",
		Remedy:  "Obtain get on image.config.openshift.io \"cluster\".",
	})
	reasonAdditionalTrustedCAMissing = finding.NewReason("AdditionalTrustedCAMissing", finding.Explanation{
		Meaning: "The ConfigMap with additional CAs does not exist.",
		Cause:   "spec.additionalTrustedCA names a ConfigMap that was deleted, or has a typo.",
		Remedy:  "Create the ConfigMap, or correct the name: oc edit image.config.openshift.io cluster.",
	})
	reasonAdditionalTrustedCAUnreadable = finding.NewReason("AdditionalTrustedCAUnreadable", finding.Explanation{
		Meaning: "The ConfigMap with additional CAs cannot be read.",
		Cause:   "A permission is missing, or the API server did not respond.",
		Remedy:  "Obtain get on the ConfigMap in the message.",
	})
	reasonAdditionalTrustedCAInvalid = finding.NewReason("AdditionalTrustedCAInvalid", finding.Explanation{
		Meaning: "An entry of the ConfigMap with additional CAs contains no certificate.",
		Cause:   "The entry is not PEM.",
		Remedy:  "Set the entry to the CA of the registry in PEM format.",
	})
	reasonProxyUnreadable = finding.NewReason("ProxyUnreadable", finding.Explanation{
		Meaning: "The cluster's proxy configuration cannot be read.",
		Cause:   "A permission is missing, or the API server did not respond.",
		Remedy:  "Obtain get on proxy.config.openshift.io \"cluster\".",
	})
	reasonTrustedBundleUnreadable = finding.NewReason("TrustedBundleUnreadable", finding.Explanation{
		Meaning: "The cluster's CA bundle cannot be read.",
		Cause:   "A permission is missing, or the API server did not respond.",
		Remedy:  "Obtain get on ConfigMap openshift-config-managed/trusted-ca-bundle.",
	})
	reasonAuthFileUnreadable = finding.NewReason("AuthFileUnreadable", finding.Explanation{
		Meaning: "A credentials file of the user cannot be used.",
		Cause:   "The file is unreadable or malformed.",
		Remedy:  "Correct the file, or log in again: podman login HOST.",
	})
	reasonBlockedRegistryIgnored = finding.NewReason("BlockedRegistryIgnored", finding.Explanation{
		Meaning: "Nodes ignore a blocked registry.",
		Cause:   "The current release was pulled from this registry, and has no mirror.",
		Remedy:  "Remove the entry, or configure a mirror of the release first.",
		Command: "oc edit image.config.openshift.io cluster",
	})
)

// attempt is a failed request to one place with one credential. Without an error,
// no request was sent because the place is closed.
type attempt struct {
	place      Place
	credential credential.Credential
	err        error
}

func (t attempt) String() string {
	switch {
	case t.err == nil:
		return t.place.String() + ": " + t.place.Closed
	case unauthorized(t.err):
		return fmt.Sprintf("%s: %s with %s", t.place, response(t.err), t.credential)
	}
	return fmt.Sprintf("%s: %s", t.place, response(t.err))
}

// reason is the kind of response.
func (t attempt) reason() finding.Reason {
	code := status(t.err)
	_, helper := errors.AsType[*credential.HelperError](t.err)
	_, certificate := errors.AsType[*tls.CertificateVerificationError](t.err)
	switch {
	case t.err == nil:
		return ReasonRegistryBlocked
	case helper:
		return reasonCredentialHelperFailed
	case certificate:
		return reasonRegistryUntrusted
	case unauthorized(t.err):
		return reasonRegistryUnauthorized
	case code == http.StatusNotFound:
		return ReasonImageNotFound
	case code == http.StatusTooManyRequests:
		return reasonRegistryRateLimited
	case code != 0:
		return reasonRegistryError
	}
	return ReasonRegistryUnreachable
}

// elsewhere reports whether another place may have the image: the error is an HTTP status or a failed request.
func elsewhere(err error) bool {
	_, status := errors.AsType[*transport.Error](err)
	_, request := errors.AsType[*url.Error](err)
	_, network := errors.AsType[net.Error](err)
	_, helper := errors.AsType[*credential.HelperError](err)
	return status || request || network || helper || errors.Is(err, io.ErrUnexpectedEOF)
}

func unauthorized(err error) bool {
	code := status(err)
	return code == http.StatusUnauthorized || code == http.StatusForbidden
}

// status is the HTTP status of the error; 0 when it has none.
func status(err error) int {
	if rejected, ok := errors.AsType[*transport.Error](err); ok {
		return rejected.StatusCode
	}
	return 0
}

// response is the error as short text. It has no URL, since the URL of a redirect may contain a credential.
func response(err error) string {
	rejected, ok := errors.AsType[*transport.Error](err)
	if !ok {
		if request, ok := errors.AsType[*url.Error](err); ok {
			err = request.Err
		}
		return words.Line(err.Error(), maxText)
	}
	text := fmt.Sprintf("%d %s", rejected.StatusCode, http.StatusText(rejected.StatusCode))
	if len(rejected.Errors) > 0 {
		text += fmt.Sprintf(" (%s)", words.Line(cmp.Or(rejected.Errors[0].Message, string(rejected.Errors[0].Code)), maxText))
	}
	return text
}

func interrupted(ctx context.Context, err error) *Error {
	failure := &Error{
		Reason: collector.ReasonInterrupted, Message: "the request to the registry was canceled",
		Remediation: "Run the preflight again and let it finish.", Err: ctx.Err(),
	}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		failure.Reason, failure.Message = collector.ReasonTimeout, "the registry did not respond in time"
		failure.Remediation = "Check the connection to the registry, then run the preflight again."
	}
	if elsewhere(err) && !errors.Is(err, ctx.Err()) {
		failure.Message += "; its last response: " + response(err)
	}
	return failure
}
