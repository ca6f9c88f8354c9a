/*
 * pem_data.h - a certificate for 127.0.0.1 and its key, in the forms that OpenSSL writes. Made for these tests, of no use
 * elsewhere.
 */
#ifndef EVREC_PEM_DATA_H
#define EVREC_PEM_DATA_H

/* Signed with its own key, until 2126. */
#define PEM_CERTIFICATE                                                                                                \
	"-----BEGIN CERTIFICATE-----\n"                                                                                \
	"MIIBQTCB56ADAgECAgEBMAoGCCqGSM49BAMCMBUxEzARBgNVBAMMCmV2cmVjLXRl\n"                                           \
	"c3QwIhgPMjAyMDAxMDEwMDAwMDBaGA8yMTI2MDEwMTAwMDAwMFowFTETMBEGA1UE\n"                                           \
	"AwwKZXZyZWMtdGVzdDBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABMmXC6khvr9+\n"                                           \
	"u8EK2mP0ry0iUkar4tjjK3htGZ3Hd2tjN9BSvAMYiCM0KskmpvfOvunJO3tNWxms\n"                                           \
	"3/f/6cfYNGqjJDAiMA8GA1UdEwEB/wQFMAMBAf8wDwYDVR0RBAgwBocEfwAAATAK\n"                                           \
	"BggqhkjOPQQDAgNJADBGAiEA+kZN4hQlV4NTfdc7Uz4GtwwTTqUmkG10EQKYCv3N\n"                                           \
	"7C4CIQCrcINcAwJhqyl69lrzsQJ+7QxLeTY4U68YHs0MQiwO9Q==\n"                                                       \
	"-----END CERTIFICATE-----\n"

/* PKCS #8 */
#define PEM_KEY                                                                                                        \
	"-----BEGIN PRIVATE KEY-----\n"                                                                                \
	"MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQg1ezZlnXAydEl34aX\n"                                           \
	"+kgdC2As11t7pXspzTpFPlDbhz2hRANCAATJlwupIb6/frvBCtpj9K8tIlJGq+LY\n"                                           \
	"4yt4bRmdx3drYzfQUrwDGIgjNCrJJqb3zr7pyTt7TVsZrN/3/+nH2DRq\n"                                                   \
	"-----END PRIVATE KEY-----\n"

/* The old form, after the parameters of its curve. */
#define PEM_KEY_SEC1                                                                                                   \
	"-----BEGIN EC PARAMETERS-----\n"                                                                              \
	"BggqhkjOPQMBBw==\n"                                                                                           \
	"-----END EC PARAMETERS-----\n"                                                                                \
	"-----BEGIN EC PRIVATE KEY-----\n"                                                                             \
	"MHcCAQEEINXs2ZZ1wMnRJd+Gl/pIHQtgLNdbe6V7Kc06RT5Q24c9oAoGCCqGSM49\n"                                           \
	"AwEHoUQDQgAEyZcLqSG+v367wQraY/SvLSJSRqvi2OMreG0Zncd3a2M30FK8AxiI\n"                                           \
	"IzQqySam986+6ck7e01bGazf9//px9g0ag==\n"                                                                       \
	"-----END EC PRIVATE KEY-----\n"

/* PKCS #8 */
#define PEM_KEY_ENCRYPTED                                                                                              \
	"-----BEGIN ENCRYPTED PRIVATE KEY-----\n"                                                                      \
	"MIHsMFcGCSqGSIb3DQEFDTBKMCkGCSqGSIb3DQEFDDAcBAi5OMhPhefJigICCAAw\n"                                           \
	"DAYIKoZIhvcNAgkFADAdBglghkgBZQMEASoEEH3JRw1Z9iFAuohxqP/h2jIEgZCW\n"                                           \
	"s7k1e5SAi0ZQh3EnrIpWywKoJUVFohxZ31Zui/4qrkQOc/+jgzyBZvCZC84I8v7q\n"                                           \
	"oVKWw6OwuPqoryAKHLzuUzMTO3GRrw8zRYcJES0CPu/N6lj63J+Xrz4d/f6qsHj5\n"                                           \
	"n8OMEGgEJjbIUjxPDnu5NbpajnS7BXyW2n5RhwKTvdOquhzcv2EJqLkj3nPS4wE=\n"                                           \
	"-----END ENCRYPTED PRIVATE KEY-----\n"

/* The old form. */
#define PEM_KEY_SEC1_ENCRYPTED                                                                                         \
	"-----BEGIN EC PRIVATE KEY-----\n"                                                                             \
	"Proc-Type: 4,ENCRYPTED\n"                                                                                     \
	"DEK-Info: AES-128-CBC,ED2072F7C7AA2CDD2A5C706ADA0EE7D2\n"                                                     \
	"\n"                                                                                                           \
	"KLGPzqC5Ie+UDB0dEWZdlvbtI3S4XfPiZcJreqFXyC5hnyLASVWXd5w/zhRaUrMX\n"                                           \
	"/7aKkfbcFnP7TJRDp68Eqy2xPoM1QY+9GR3JKg6nI0ZCj5AYNLFRDqrt6gmTTdR9\n"                                           \
	"enbtqKatThpLkxZvG4vmfYmSRZm4OYyGcTRH32iBj2A=\n"                                                               \
	"-----END EC PRIVATE KEY-----\n"

#endif
