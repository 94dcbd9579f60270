// Package signature answers: is this digest signed by keys that this cluster trusts?
//
// A release is signed by simple signing (containers/image): an OpenPGP message, kept in a signature store under the
// digest, whose content, the signature claim, binds the digest to an image reference. Verify searches the stores and
// returns a Release, the proof that is required before anything of the release is read.
//
// # Rules of the cluster-version operator
//
// Valid signatures are accepted as the cluster-version operator (CVO) accepts them (library-go pkg/verify,
// cluster-version-operator pkg/cvo/cvo.go):
//
//   - One key satisfies a keyring, and every verifier-public-key-* keyring must be
//     satisfied, by one signature or by several.
//   - The signatures in ConfigMaps of the cluster come first. Then come the stores
//     of ClusterVersion spec.signatureStores, which replace the stores of the
//     release when the field is set, even to an empty list; otherwise the store-*
//     entries of the release.
//   - Nine signatures are read from a store on the network.
//   - Stores are reached through the proxy of the cluster, unless this machine's
//     environment names a proxy, and with the certificate authorities in its
//     trusted-ca-bundle.
//   - An expired key may sign. The proof has a warning.
//
// # Deliberate differences
//
// Every rule that is stricter than CVO's has its own Reason. Release.CVOAccepts and Error.CVOAccepts report what CVO
// would decide about the same signatures.
//
//	input                                     here                     CVO
//	the signed reference names another         WrongRepository          accepts: never compared
//	repository
//	the signed reference has another version  WrongVersion             accepts: never compared
//	than the release itself
//	the signed reference has no tag           NoSignedVersion, Unknown accepts
//	data follows the signature claim          TrailingData             accepts
//	a duplicate field in the claim            DuplicateField           accepts, the last one wins
//	unexpected letter case of a field         FieldCase                accepts
//	SHA-1 or SHA-224 digest                   WeakDigest               accepts
//	MD5 or RIPEMD-160 digest                  WeakDigest               accepts MD5
//	signature dated in the future             SignatureNotYetValid     accepts
//	signature older than its key              KeyNotYetValid           accepts
//	unsigned attributes                       UnsignedAttributes       accepts
//	more than 64 KiB, also decompressed       TooLarge                 reads all of it
//	compressed with bzip2                     UnsupportedSignature     accepts
//	any form not written by `gpg --sign`      MalformedSignature       accepts some
//	(with or without --textmode)
//	version 3 signature, unknown algorithm    UnsupportedSignature,    accepts version 3
//	                                          Unknown
//	critical notation                         UnsupportedSignature,    accepts
//	                                          Unknown
//	a tag beside the digest in the pull spec  InvalidPullSpec          accepts
//	key of a type that CVO's library lacks    accepted (Ed25519)       ignores the key
//	second armor block of a keyring           accepted                 ignores the block
//	ca of spec.signatureStores                trusted, as specified    ignores it
//	stores of equal rank                      read in order, each      read concurrently
//	                                          with its share of time
//	a store that fails                        the next store is read   reads its next signature;
//	                                                                   a failing list of ConfigMaps
//	                                                                   ends the search
//	keys and stores                           read from ConfigMap      read from the files of the
//	                                          release-verification,    release that it runs
//	                                          written by CVO
//
// OpenPGP has values that cannot be verified: the format, the file name and the exact date of the literal packet, the
// line ends of a signed text, and the padding bits of a compressed stream. None is used.
//
// # Bounds
//
// All input from a store is bounded: a response (64 KiB), its decompressed content (64 KiB), its header (64 KiB), the
// time of a request (10 s), redirects (5), signatures (9 per store, 100 in ConfigMaps), and the total time (two
// minutes). One verification uses less than 64 MiB of memory.
package signature
