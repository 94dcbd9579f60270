package registry

import "github.com/openshift/update-preflight/collector/finding"

// ReasonInvalidPullSpec is reported when the name of an image cannot be parsed.
//
// Cause: the pull spec is malformed.
//
// Remedy: name the image as REPOSITORY@sha256:DIGEST.
const ReasonInvalidPullSpec finding.Reason = "InvalidPullSpec"

// ReasonRegistryNotAllowed is reported when the registry of an image is not among
// the cluster's allowed registries.
//
// Cause: allowedRegistries of image.config.openshift.io "cluster" does not list it.
//
// Remedy: allow the registry: oc edit image.config.openshift.io cluster.
const ReasonRegistryNotAllowed finding.Reason = "RegistryNotAllowed"

// ReasonRegistryUnauthorized is reported when a registry rejects the credentials.
//
// Cause: the credential is missing, expired, or may not pull the image.
//
// Remedy: renew the entry of the registry in Secret openshift-config/pull-secret,
// or log in: podman login HOST.
const ReasonRegistryUnauthorized finding.Reason = "RegistryUnauthorized"

// ReasonCredentialHelperFailed is reported when a credential helper of this
// machine fails.
//
// Cause: the program docker-credential-NAME is missing or failed.
//
// Remedy: fix the helper, or log in without it: podman login HOST.
const ReasonCredentialHelperFailed finding.Reason = "CredentialHelperFailed" //nolint:gosec // not a credential

// ReasonRegistryUntrusted is reported when the certificate of a registry is not
// trusted.
//
// Cause: its CA is not among those of the cluster.
//
// Remedy: add the CA to the ConfigMap named in spec.additionalTrustedCA: oc edit
// image.config.openshift.io cluster.
const ReasonRegistryUntrusted finding.Reason = "RegistryUntrusted"

// ReasonRegistryUnreachable is reported when a registry cannot be reached.
//
// Cause: DNS, the network, the proxy or a firewall.
//
// Remedy: make the registry reachable from here, or mirror the release, then run the
// preflight again: oc adm release mirror.
const ReasonRegistryUnreachable finding.Reason = "RegistryUnreachable"

// ReasonRepositoryNotMirrored is reported when the registry of an image cannot be reached,
// and no mirror set of the cluster has an entry for its repository.
//
// Cause: the mirror sets are for other repositories than that of the release.
//
// Remedy: mirror the release, and add the entry to a mirror set: oc edit
// imagedigestmirrorset NAME.
const ReasonRepositoryNotMirrored finding.Reason = "RepositoryNotMirrored"

// ReasonMirrorIncomplete is reported when a mirror lacks an image, and the registry of the
// image cannot be reached.
//
// Cause: the release was not mirrored, or not completely.
//
// Remedy: mirror the release again: oc adm release mirror.
const ReasonMirrorIncomplete finding.Reason = "MirrorIncomplete"

// ReasonRegistryRateLimited is reported when a registry limits the rate of pulls.
//
// Cause: the account pulled too often.
//
// Remedy: wait, or log in with another account: podman login HOST.
const ReasonRegistryRateLimited finding.Reason = "RegistryRateLimited"

// ReasonRegistryError is reported when a registry responds with an error.
//
// Cause: a failure of the registry.
//
// Remedy: run the preflight again; if the error persists, ask the operators of the
// registry.
const ReasonRegistryError finding.Reason = "RegistryError"

// ReasonImageNotFound is reported when no registry has the image.
//
// Cause: the pull spec is wrong, or the image was not mirrored.
//
// Remedy: check the pull spec, and mirror the release: oc adm release mirror.
const ReasonImageNotFound finding.Reason = "ImageNotFound"

// ReasonRegistryBlocked is reported when the cluster pulls from no repository of
// the image.
//
// Cause: blockedRegistries of image.config.openshift.io "cluster", or a
// mirrorSourcePolicy of NeverContactSource.
//
// Remedy: mirror the image to an allowed registry, or change the policy: oc edit
// image.config.openshift.io cluster.
const ReasonRegistryBlocked finding.Reason = "RegistryBlocked"

// ReasonPullSecretUnreadable is reported when the cluster's pull secret cannot be
// used.
//
// Cause: a permission is missing, or the Secret is malformed.
//
// Remedy: obtain get on Secret openshift-config/pull-secret, or correct it: oc set
// data secret/pull-secret -n openshift-config --from-file=.dockerconfigjson=FILE.
const ReasonPullSecretUnreadable finding.Reason = "PullSecretUnreadable"

// ReasonMirrorsUnreadable is reported when the cluster's mirror sets cannot be
// read.
//
// Cause: a permission is missing, or the API server did not respond.
//
// Remedy: obtain list on the objects that the message names.
const ReasonMirrorsUnreadable finding.Reason = "MirrorsUnreadable"

// ReasonRegistrySourcesUnreadable is reported when the cluster's registry
// configuration cannot be read.
//
// Cause: a permission is missing, or the API server did not respond.
//
// Remedy: obtain get on image.config.openshift.io "cluster".
const ReasonRegistrySourcesUnreadable finding.Reason = "RegistrySourcesUnreadable"

// ReasonAdditionalTrustedCAMissing is reported when the ConfigMap with additional
// CAs does not exist.
//
// Cause: spec.additionalTrustedCA names a ConfigMap that was deleted or mistyped.
//
// Remedy: create the ConfigMap, or correct the name: oc edit
// image.config.openshift.io cluster.
const ReasonAdditionalTrustedCAMissing finding.Reason = "AdditionalTrustedCAMissing"

// ReasonAdditionalTrustedCAUnreadable is reported when the ConfigMap with
// additional CAs cannot be read.
//
// Cause: a permission is missing, or the API server did not respond.
//
// Remedy: obtain get on the ConfigMap that the message names.
const ReasonAdditionalTrustedCAUnreadable finding.Reason = "AdditionalTrustedCAUnreadable"

// ReasonAdditionalTrustedCAInvalid is reported when an entry of the ConfigMap with
// additional CAs holds no certificate.
//
// Cause: the entry is not PEM.
//
// Remedy: set the entry to the CA of the registry in PEM.
const ReasonAdditionalTrustedCAInvalid finding.Reason = "AdditionalTrustedCAInvalid"

// ReasonProxyUnreadable is reported when the cluster's proxy cannot be read.
//
// Cause: a permission is missing, or the API server did not respond.
//
// Remedy: obtain get on proxy.config.openshift.io "cluster".
const ReasonProxyUnreadable finding.Reason = "ProxyUnreadable"

// ReasonTrustedBundleUnreadable is reported when the cluster's CA bundle cannot be
// read.
//
// Cause: a permission is missing, or the API server did not respond.
//
// Remedy: obtain get on ConfigMap openshift-config-managed/trusted-ca-bundle.
const ReasonTrustedBundleUnreadable finding.Reason = "TrustedBundleUnreadable"

// ReasonAuthFileUnreadable is reported when a credentials file of the user cannot
// be used.
//
// Cause: the file is not readable or malformed.
//
// Remedy: correct the file, or log in again: podman login HOST.
const ReasonAuthFileUnreadable finding.Reason = "AuthFileUnreadable"

// ReasonBlockedRegistryIgnored is reported when nodes ignore a blocked registry.
//
// Cause: the current release was pulled from there, and has no mirror.
//
// Remedy: remove the entry, or configure a mirror of the release: oc edit
// image.config.openshift.io cluster.
const ReasonBlockedRegistryIgnored finding.Reason = "BlockedRegistryIgnored"

// ReasonContradictoryMirrors is reported when two mirror sets have different
// policies for one source.
//
// Cause: different values of mirrorSourcePolicy; the machine-config operator then
// writes no mirrors to the nodes.
//
// Remedy: set the same mirrorSourcePolicy: oc edit
// imagedigestmirrorset,imagetagmirrorset.
const ReasonContradictoryMirrors finding.Reason = "ContradictoryMirrors"
