// Package imagestream answers: would this cluster accept the ImageStreams of the target?
//
// The cluster-version operator (CVO) creates or changes each ImageStream of a release, such as openshift/cli. If
// spec.allowedRegistriesForImport of image.config.openshift.io "cluster" is set, openshift-apiserver rejects
// ImageStreams with images of other registries, and CVO retries until the update is given up. [Check]
// compares the images with the list as that server does (pkg/image/apis/image/validation/validation.go,
// ValidateImageStreamUpdateWithWhitelister):
//
//   - The internal registry is allowed, whatever the list has.
//   - An ImageStream that exists may have any image of a repository of which it has one already, in its spec or its
//     status.
//   - Mirrors of the nodes do not count: the list is about the registry in the name of the image.
//
// It costs one request, and one for each ImageStream with an image of another registry. An image whose name is
// malformed is Unknown. Not predicted: spec.dockerImageRepository, which no ImageStream of a release has, rejections
// for other reasons, and images that cannot be imported, which do not stop CVO.
package imagestream

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	configv1 "github.com/openshift/api/config/v1"
	imagev1 "github.com/openshift/api/image/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/dynamic"

	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/gap"
	"github.com/openshift/update-preflight/collector/words"
	"github.com/openshift/update-preflight/runner/payload"
)

var (
	// Name is the name of the check, and the prefix of the names of its findings.
	Name = finding.NewName("ImageStreams",
		"The check for ImageStreams of the release that the cluster rejects: a finding ImageStreams-<registry> for "+
			"each registry that spec.allowedRegistriesForImport of image.config.openshift.io \"cluster\" does not list.")

	reasonAccepted = finding.NewReason("ImageStreamsAccepted", finding.Explanation{
		Meaning: "The cluster may import images from the registries of all ImageStreams of the target.",
		Cause:   "spec.allowedRegistriesForImport of image.config.openshift.io \"cluster\" is not set, or lists all of them.",
	})
	reasonNotAllowed = finding.NewReason("RegistryNotAllowedForImport", finding.Explanation{
		Meaning: "The API server rejects an ImageStream of the target, so the cluster-version operator does not " +
			"complete the update.",
		Cause: "spec.allowedRegistriesForImport of image.config.openshift.io \"cluster\" does not list the registry, " +
			"and the ImageStream does not contain an image of the same repository yet. An entry without a port " +
			"covers port 443, and port 80 only if it is insecure.",
		Remedy:  "Add the registry to spec.allowedRegistriesForImport, and wait until openshift-apiserver is rolled out.",
		Command: "oc edit image.config.openshift.io cluster",
	})
	reasonUnread = finding.NewReason("ImageStreamsUnread", finding.Explanation{
		Meaning: "It is unknown whether the cluster accepts an ImageStream of the target with an image from an " +
			"unlisted registry.",
		Cause: "The ImageStream in the cluster cannot be read, or a filter of the manifest is inconclusive. The " +
			"message contains the cause for each.",
		Remedy: "Obtain get on the ImageStreams in the message, or fix the causes that it names.",
	})
)

const (
	// maxTime bounds the time of the check.
	maxTime = 3 * time.Minute
	// mostNamed bounds the ImageStreams in a message, and the tags of one.
	mostNamed = 5
	// createOnly keeps CVO from changing an object that exists (cluster-version-operator lib/resourceapply).
	createOnly = "release.openshift.io/create-only"
	// dockerImage is the kind of a tag whose image openshift-apiserver imports from a registry.
	dockerImage = "DockerImage"
)

// Check is the check ImageStreams. Which ImageStreams it reads follows from the release.
func Check(client dynamic.Interface, streams []payload.Definition) check.Check {
	made := check.Check{Name: Name, Kind: finding.SourceRisk}
	made.Reads = append(made.Reads, check.Get(configv1.GroupName, "images", "", "cluster"))
	for _, each := range streams {
		if len(validation.IsDNS1123Subdomain(each.Name)) == 0 && len(validation.IsDNS1123Label(each.Namespace)) == 0 {
			made.Reads = append(made.Reads, check.Get(imagev1.GroupName, "imagestreams", each.Namespace, each.Name))
		}
	}
	made.Run = func(ctx context.Context, _ check.Subject) ([]finding.Finding, error) {
		ctx, cancel := context.WithTimeout(ctx, maxTime)
		defer cancel()
		var image configv1.Image
		err := get(ctx, client.Resource(configv1.GroupVersion.WithResource("images")), "cluster", &image)
		if err != nil && !apierrors.IsNotFound(err) { // without it, no list is set
			return nil, fmt.Errorf("could not read image.config.openshift.io \"cluster\": %w", err)
		}
		s := survey{client: client, allowed: allowlistOf(&image), rejected: map[string][]rejection{}}
		for _, each := range streams {
			if err := s.examine(ctx, each); err != nil {
				stream := words.External(each.Namespace + "/" + each.Name)
				s.unread = append(s.unread, stream+": "+words.External(err.Error()))
			}
		}
		return s.findings(len(streams)), nil
	}
	return made
}

func get(ctx context.Context, from dynamic.ResourceInterface, object string, into any) error {
	read, err := from.Get(ctx, object, metav1.GetOptions{})
	if err != nil {
		return err
	}
	return runtime.DefaultUnstructuredConverter.FromUnstructured(read.Object, into)
}

type survey struct {
	client  dynamic.Interface
	allowed allowlist
	// rejected are the ImageStreams that the cluster rejects, by the registry.
	rejected map[string][]rejection
	// unread are those that were inconclusive, each with its cause.
	unread []string
}

// rejection is an ImageStream with the tags whose images are of one registry.
type rejection struct {
	object finding.Object
	tags   []string
}

// examine compares one ImageStream with the list. An error means that this was inconclusive.
func (s *survey) examine(ctx context.Context, definition payload.Definition) error {
	if s.allowed == nil || definition.Deleted {
		return nil
	}
	var target, present imagev1.ImageStream
	if err := definition.Into(&target); err != nil {
		return err
	}
	if rejected, err := s.reject(&target, &present); err != nil || len(rejected) == 0 {
		return err
	}
	if definition.Namespace == "" { // the path is not a resource
		return errors.New("the manifest has no metadata.namespace")
	}
	resource := imagev1.GroupVersion.WithResource("imagestreams")
	err := get(ctx, s.client.Resource(resource).Namespace(definition.Namespace), definition.Name, &present)
	switch {
	case apierrors.IsNotFound(err) && apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse):
		return nil // the API is not served, so no list is applied
	case apierrors.IsNotFound(err): // CVO creates it
	case err != nil:
		return err
	case target.Annotations[createOnly] == "true":
		return nil
	}
	rejected, err := s.reject(&target, &present)
	object := finding.Object{
		APIVersion: imagev1.GroupVersion.String(), Kind: "ImageStream", Namespace: definition.Namespace, Name: definition.Name,
	}
	for registry, tags := range rejected {
		s.rejected[registry] = append(s.rejected[registry], rejection{object, tags})
	}
	return err
}

// reject returns the tags that openshift-apiserver rejects, by the registry of their images. In an ImageStream that is
// present, CVO replaces the tags of the target and keeps other annotations (cluster-version-operator
// lib/resourcemerge/imagestream.go).
func (s *survey) reject(target, present *imagev1.ImageStream) (map[string][]string, error) {
	const annotation = imagev1.InsecureRepositoryAnnotation
	insecure, stated := target.Annotations[annotation]
	if !stated {
		insecure = present.Annotations[annotation]
	}
	kept, rejected := repositories(present), map[string][]string{}
	for _, tag := range target.Spec.Tags {
		if tag.From == nil || tag.From.Kind != dockerImage {
			continue
		}
		image, err := name.ParseReference(tag.From.Name)
		if err != nil {
			return nil, fmt.Errorf("tag %s: %w", tag.Name, err)
		}
		registry := image.Context().RegistryStr()
		if isHub(registry) {
			registry = hub // as it is listed
		}
		port := httpsPort
		if insecure == "true" || tag.ImportPolicy.Insecure {
			port = anyPort
		}
		if !kept[image.Context().Name()] && !s.allowed.admits(registry, port) {
			rejected[registry] = append(rejected[registry], "tag "+words.External(tag.Name))
		}
	}
	return rejected, nil
}

// repositories are the repositories whose images the ImageStream contains.
func repositories(stream *imagev1.ImageStream) map[string]bool {
	images := []string{stream.Spec.DockerImageRepository}
	for _, tag := range stream.Spec.Tags {
		if tag.From != nil && tag.From.Kind == dockerImage {
			images = append(images, tag.From.Name)
		}
	}
	for _, tag := range stream.Status.Tags {
		for _, item := range tag.Items {
			images = append(images, item.DockerImageReference)
		}
	}
	all := map[string]bool{}
	for _, each := range images {
		if image, err := name.ParseReference(each); err == nil {
			all[image.Context().Name()] = true
		}
	}
	return all
}

func (s *survey) findings(streams int) []finding.Finding {
	var found []finding.Finding
	for _, registry := range slices.Sorted(maps.Keys(s.rejected)) {
		found = append(found, describe(registry, s.rejected[registry]))
	}
	if len(s.unread) > 0 {
		found = append(found, finding.Unknown(reasonUnread,
			"%s of the target could not be compared with allowedRegistriesForImport of image.config.openshift.io \"cluster\": %s",
			words.Count(len(s.unread), "ImageStream"), words.Clauses(s.unread, mostNamed)).Do(finding.Roles()))
	}
	if len(found) == 0 {
		return []finding.Finding{finding.Pass(gap.Proven("image.config.openshift.io and the ImageStreams of the target"), reasonAccepted,
			"the cluster imports from the registries of %s of the target", words.Count(streams, "ImageStream"))}
	}
	return finding.Bounded(finding.Drafts(found...))
}

// describe is the finding about the ImageStreams with images of one registry.
func describe(registry string, rejected []rejection) finding.Finding {
	var clauses []string
	var about []finding.Object
	for _, each := range rejected {
		about = append(about, each.object)
		if len(clauses) < mostNamed {
			clauses = append(clauses, words.External(check.Describe(each.object))+words.Aside(words.List(each.tags, mostNamed)))
		}
	}
	return finding.Fail(reasonNotAllowed, "allowedRegistriesForImport of image.config.openshift.io \"cluster\" does not list %q, "+
		"from which the target imports %s: openshift-apiserver rejects the change, and the cluster-version operator does not complete the update",
		words.External(registry), words.ListOf(clauses, len(rejected))).
		Named(finding.NameOf(Name, registry)).About(about...).
		Do(finding.Change("oc edit image.config.openshift.io cluster"))
}

// allowlist is from where openshift-apiserver imports images (openshift-apiserver
// pkg/image/apis/image/validation/whitelist/whitelister.go). It is nil where that is everywhere.
type allowlist []hostPort

// hostPort is a pattern of hosts and one of ports, in which * is any text and ? any character.
type hostPort struct{ host, port string }

func allowlistOf(image *configv1.Image) allowlist {
	allowed := slices.Clone(image.Spec.AllowedRegistriesForImport)
	if len(allowed) == 0 {
		return nil
	}
	if internal := image.Status.InternalRegistryHostname; internal != "" { // the list need not have it
		allowed = append(allowed, configv1.RegistryLocation{DomainName: internal})
	}
	var list allowlist
	for _, each := range allowed {
		host, port, hasPort := strings.Cut(each.DomainName, ":")
		switch {
		case hasPort: // one with two colons allows nothing: the server does not start with it
		case each.Insecure:
			port = "80"
		default:
			port = "443"
		}
		list = append(list, hostPort{host, port})
	}
	return list
}

// admits reports whether openshift-apiserver imports from a registry. byDefault is the port if the registry has none:
// the HTTPS port, or anyPort for an insecure registry, which may use either default port. The names of Docker Hub count
// as one.
func (l allowlist) admits(registry, byDefault string) bool {
	hosts, port := []string{registry}, byDefault
	if host, stated, err := net.SplitHostPort(registry); err == nil {
		hosts, port = []string{host}, stated
	}
	if isHub(registry) {
		hosts = []string{hub, "registry-1." + hub}
	}
	return slices.ContainsFunc(l, func(allowed hostPort) bool {
		covers := matches(port, allowed.port)
		if port == anyPort {
			covers = slices.Contains([]string{"80", "443", "*"}, allowed.port)
		}
		return covers && slices.ContainsFunc(hosts, func(host string) bool { return matches(host, allowed.host) })
	})
}

const (
	hub = "docker.io"
	// httpsPort and anyPort are default ports.
	httpsPort, anyPort = "443", ""
)

func isHub(registry string) bool {
	return slices.Contains([]string{hub, "index." + hub, "registry-1." + hub}, registry)
}

// matches is IsWildcardMatch of wildcard.go.
func matches(text, pattern string) bool {
	pattern = strings.NewReplacer(`\*`, ".*", `\?`, ".").Replace(regexp.QuoteMeta(pattern))
	matched, err := regexp.MatchString(`^(?s:`+pattern+`)$`, text)
	return err == nil && matched
}
