// The interface in C++: a program that a C++ compiler takes without a warning records to a file and to functions of its
// own, and reads events. Prints TAP.
#include "evrec.h"
#include "evrec_otlp.h"
#include "evrec_read.h"

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <string>
#include <unistd.h>

static int tests;

static void check(bool ok, const std::string &what)
{
	std::cout << (ok ? "ok " : "not ok ") << ++tests << " - " << what << "\n";
}

static std::string text_of(evrec_str s)
{
	return std::string(s.data == nullptr ? "" : s.data, s.len);
}

static void test_strings()
{
	const evrec_str literal = EVREC_STR("Pod"), made = evrec_string(std::string("shop").c_str());

	check(text_of(literal) == "Pod" && literal.len == 3, "a literal");
	check(made.len == 4, "a string of a char *");
	check(evrec_string(nullptr).len == 0 && evrec_string("").len == 0, "an unset string");
}

static int record(evrec_recorder *recorder, const std::string &name)
{
	evrec_reference pod = {};
	evrec_emit emit;

	pod.kind = EVREC_STR("Pod");
	pod.ns = EVREC_STR("shop");
	pod.name = evrec_string(name.c_str());
	evrec_emit_init(&emit);
	emit.regarding = &pod;
	emit.type = EVREC_STR("Normal");
	emit.reason = EVREC_STR("Started");
	emit.note = EVREC_STR("Started by C++");
	return evrec_recorder_emit(recorder, &emit, nullptr);
}

// Records an event to the sink, and releases the sink.
static void record_to(evrec_sink *sink, const std::string &what)
{
	evrec_error err = {};
	evrec_broadcaster *broadcaster = evrec_broadcaster_new(nullptr, &err);
	evrec_watch *watch = evrec_broadcaster_start_recording_to_sink(broadcaster, sink, nullptr, &err);
	evrec_recorder_options source;
	evrec_recorder_options_init(&source);
	source.component = EVREC_STR("c++");
	evrec_recorder *recorder = evrec_recorder_new(broadcaster, &source, &err);

	check(watch != nullptr && recorder != nullptr && record(recorder, "web-0") == 0 &&
	              evrec_broadcaster_shutdown(broadcaster, 20 * EVREC_SECOND, nullptr) == 0,
	      "records to " + what);
	evrec_watch_free(watch);
	evrec_recorder_free(recorder);
	evrec_broadcaster_free(broadcaster);
	evrec_sink_release(sink);
}

static void test_file()
{
	std::string path = std::filesystem::temp_directory_path() / "evrec-cxx.XXXXXX", line;
	const int fd = mkstemp(path.data());

	record_to(evrec_sink_file(evrec_string(path.c_str()), nullptr, nullptr), "a file");
	std::getline(std::ifstream(path), line);
	check(line.find("\"message\":\"Started by C++\"") != std::string::npos, "the file has the event");
	check(line.find("1970") == std::string::npos, "an event without a timestamp happened now");
	close(fd);
	std::remove(path.c_str());
}

static void test_functions()
{
	static std::string name;
	evrec_sink_ops ops = {};

	ops.name = "c++";
	ops.create = [](void *, const evrec_event *event, evrec_answer *answer) {
		name = text_of(evrec_event_fields(event)->regarding.name);
		answer->status = 201;
	};
	record_to(evrec_sink_new(&ops, nullptr, nullptr, nullptr), "a function");
	check(name == "web-0", "the function got the event");
}

static void test_schema()
{
	unsigned fields = 0;

	for (const evrec_field *field = evrec_event_schema; field->name[EVREC_CORE_V1] != nullptr; field++) {
		fields++;
	}
	check(fields > 10, "the table of fields");
}

static void test_reading()
{
	const std::string path = std::filesystem::temp_directory_path() / ("evrec-read-" + std::to_string(getpid()));
	evrec_found found;
	evrec_query query;

	std::ofstream(path) << R"({"metadata":{"name":"web-0.1","namespace":"shop"},"reason":"Killing"})" << std::endl;
	evrec_query_init(&query);
	query.reason = EVREC_STR("Killing");
	evrec_source *source = evrec_source_lines(evrec_string(path.c_str()), nullptr);
	evrec_reader *reader = evrec_source_query(source, &query, nullptr);
	check(evrec_reader_begin(reader, EVREC_FOREVER, nullptr) == 0, "a query begins");
	check(evrec_reader_next(reader, EVREC_FOREVER, &found, nullptr) == EVREC_READ_EVENT &&
	              text_of(evrec_event_fields(found.event)->name) == "web-0.1",
	      "a query reads an event");
	check(evrec_reader_next(reader, EVREC_FOREVER, &found, nullptr) == EVREC_READ_END, "a query ends");
	evrec_reader_free(reader);
	evrec_source_release(source);
	std::filesystem::remove(path);
}

static void test_otlp()
{
	evrec_otlp_options options;
	evrec_error err;

	evrec_otlp_options_init(&options);
	check(text_of(options.endpoint) == "http://localhost:4318/v1/logs", "the default endpoint");
	evrec_sink *sink = evrec_sink_otlp(&options, &err);
	check(sink != nullptr, "an OTLP sink is made");
	evrec_sink_release(sink);
	options.batch_max = 0;
	check(evrec_sink_otlp(&options, &err) == nullptr && err.code == EVREC_EINVALID, "an option is refused");
}

int main()
{
	test_strings();
	test_file();
	test_functions();
	test_schema();
	test_reading();
	test_otlp();
	std::cout << "1.." << tests << "\n";
	return 0;
}
