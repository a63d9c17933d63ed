#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>
#include <new>

#include "base/shown.h"
#include "runtime/devices.h"
#include "runtime/session.h"
#include "weft/weft.h"

// weft/weft.h over sessions. Every function that can fail runs in guarded(): no exception leaves it.
using namespace weft;

struct weft_program {
  struct Port {
    std::string type;
    IntList dims;
  };
  std::shared_ptr<const program::CompiledProgram> program;
  std::vector<Port> ports[3];  // by weft_port_kind
  mutable std::once_flag printed;
  mutable std::string text;  // made when it is first asked for
};

struct weft_session {
  struct Input {
    runtime::HostView view;
    bool bound = false;
  };
  struct Output {
    std::span<std::byte> bound;
    std::vector<std::byte> own;
    seam::ConcreteType type;
  };
  std::unique_ptr<runtime::Session> session;
  std::vector<Input> inputs;
  std::vector<Output> outputs;
  bool ran = false;
  // Of all sessions that share states.
  std::shared_ptr<std::atomic<bool>> busy = std::make_shared<std::atomic<bool>>(false);
};

namespace {

// The text stands ready for the case in which there is no memory to make one.
thread_local std::string last_error;
thread_local bool no_memory = false;

weft_result out_of_memory() {
  no_memory = true;
  return WEFT_ERROR_OUT_OF_MEMORY;
}

weft_result failed(Code code, std::string_view message) {
  last_error = message;
  no_memory = false;
  return static_cast<weft_result>(code);
}

template <class F>
weft_result guarded(F&& run) noexcept {
  try {
    const Status status = run();
    return status.ok() ? WEFT_SUCCESS : failed(status.code(), status.message());
  } catch (const std::bad_alloc&) {
    return out_of_memory();
  } catch (const std::exception& e) {
    try {
      return failed(Code::internal, e.what());
    } catch (const std::bad_alloc&) {
      return out_of_memory();
    }
  }
}

Status wants(const void* argument, const char* name) {
  return argument ? Status() : invalid("{} is null", name);
}

/// Runs on a session that no other thread is in.
template <class F>
weft_result on_session(weft_session* session, F&& run) noexcept {
  return guarded([&]() -> Status {
    WEFT_CHECK(wants(session, "session"));
    if (session->busy->exchange(true))
      return invalid(
          "this session, or one with the same states, is used by another thread now; open one session a "
          "thread");
    struct Leave {
      ~Leave() { busy = false; }
      std::atomic<bool>& busy;
    } const leave{*session->busy};
    return run();
  });
}

struct Found {
  const std::string* name;
  const TensorType* type;
};
std::vector<Found> ports_of(const program::CompiledProgram& p, int kind) {
  std::vector<Found> out;
  const auto add = [&](const std::string& name, program::ValueId value) {
    out.push_back({&name, &p.values[static_cast<size_t>(value)].type});
  };
  if (kind == WEFT_INPUT)
    for (const auto& i : p.inputs) add(i.name, i.value);
  if (kind == WEFT_OUTPUT)
    for (const auto& o : p.outputs) add(o.name, o.value);
  if (kind == WEFT_STATE)
    for (const auto& s : p.states) add(s.name, s.before);
  return out;
}

Status make(Result<program::CompiledProgram> read, weft_program** to) {
  WEFT_TRY(auto p, std::move(read));
  auto made = std::make_unique<weft_program>();
  made->program = std::make_shared<const program::CompiledProgram>(std::move(p));
  for (const int kind : {WEFT_INPUT, WEFT_OUTPUT, WEFT_STATE})
    for (const Found& port : ports_of(*made->program, kind)) {
      IntList dims;
      for (const Dim d : port.type->shape) dims.push_back(d.is_const() ? d.value() : -1);
      made->ports[kind].push_back({text(*port.type), std::move(dims)});
    }
  *to = made.release();
  return {};
}

Status check_kind(int kind) {
  return kind >= WEFT_INPUT && kind <= WEFT_STATE ? Status() : invalid("there are no ports of kind {}", kind);
}

/// The states that a session of `program` takes from `other`, which must be on its device and of its types.
Status check_shared_states(const program::CompiledProgram& program, const seam::Device& device,
                           const runtime::Session& other) {
  if (&other.device() != &device)
    return invalid("states_of: that session runs on {}, this one on {}", other.backend(), device.name());
  size_t shared = 0;
  for (const Found& mine : ports_of(program, WEFT_STATE))
    for (const Found& its : ports_of(other.program(), WEFT_STATE)) {
      if (*mine.name != *its.name) continue;
      if (!(*mine.type == *its.type))
        return invalid("states_of: state {} is {} there, {} here", *mine.name, text(*its.type),
                       text(*mine.type));
      ++shared;
    }
  return shared ? Status() : invalid("states_of: the two programs have no state in common");
}

// Outputs of the sizes that this run gives, where the caller has bound no memory.
Status make_room(weft_session& s) {
  std::vector<runtime::HostView> views;
  for (const auto& in : s.inputs) views.push_back(in.view);
  WEFT_TRY(auto types, s.session->output_types(views));
  for (size_t i = 0; i < types.size(); ++i) {
    auto& out = s.outputs[i];
    out.type = std::move(types[i]);
    if (!out.bound.data()) out.own.resize(out.type.bytes());
  }
  return {};
}

Status run(weft_session& s) {
  s.ran = false;
  const auto& p = s.session->program();
  for (size_t i = 0; i < s.inputs.size(); ++i)
    if (!s.inputs[i].bound)
      return invalid("input {} of {} is not bound", shown(p.inputs[i].name), shown(p.name));
  WEFT_CHECK(make_room(s));
  std::vector<runtime::HostView> in;
  for (const auto& i : s.inputs) in.push_back(i.view);
  std::vector<std::span<std::byte>> out;
  for (auto& o : s.outputs) out.push_back(o.bound.data() ? o.bound : std::span(o.own));
  WEFT_CHECK(s.session->run_into(in, out));
  s.ran = true;
  return {};
}

}  // namespace

extern "C" {

const char* weft_version(void) { return WEFT_RELEASE; }

const char* weft_error_text(void) { return no_memory ? "there is no memory left" : last_error.c_str(); }

weft_result weft_program_load(const char* path, weft_program** program) {
  return guarded([&]() -> Status {
    WEFT_CHECK(wants(path, "path"));
    WEFT_CHECK(wants(program, "program"));
    return make(program::read_file(path), program);
  });
}

weft_result weft_program_load_bytes(const void* bytes, size_t size, weft_program** program) {
  return guarded([&]() -> Status {
    WEFT_CHECK(wants(bytes, "bytes"));
    WEFT_CHECK(wants(program, "program"));
    return make(program::deserialize(program::Blob::copy_of(bytes, size)), program);
  });
}

void weft_program_free(weft_program* program) { delete program; }

const char* weft_program_name(const weft_program* program) { return program->program->name.c_str(); }

const char* weft_program_text(const weft_program* program) {
  const auto made = guarded([&]() -> Status {
    std::call_once(program->printed, [&] { program->text = program::print(*program->program); });
    return {};
  });
  return made == WEFT_SUCCESS ? program->text.c_str() : "";
}

size_t weft_program_count(const weft_program* program, weft_port_kind kind) {
  return kind < WEFT_INPUT || kind > WEFT_STATE ? 0 : program->ports[kind].size();
}

weft_result weft_program_port(const weft_program* program, weft_port_kind kind, size_t index,
                              weft_port* port) {
  return guarded([&]() -> Status {
    WEFT_CHECK(wants(port, "port"));
    WEFT_CHECK(check_kind(kind));
    const auto& texts = program->ports[kind];
    if (index >= texts.size()) return invalid("port {} of {}", index, texts.size());
    const Found found = ports_of(*program->program, kind)[index];
    *port = {.name = found.name->c_str(),
             .dtype = name(found.type->dtype),
             .type = texts[index].type.c_str(),
             .element_size = byte_size(found.type->dtype),
             .rank = texts[index].dims.size(),
             .dims = texts[index].dims.data()};
    return {};
  });
}

size_t weft_program_symbol_count(const weft_program* program) { return program->program->symbols.size(); }

weft_result weft_program_symbol(const weft_program* program, size_t index, weft_symbol* symbol) {
  return guarded([&]() -> Status {
    WEFT_CHECK(wants(symbol, "symbol"));
    const auto& all = program->program->symbols;
    if (index >= all.size()) return invalid("symbol {} of {}", index, all.size());
    *symbol = {all[index].name.c_str(), all[index].min, all[index].max};
    return {};
  });
}

weft_result weft_session_open(const weft_program* program, const weft_options* options,
                              weft_session** session) {
  return guarded([&]() -> Status {
    WEFT_CHECK(wants(program, "program"));
    WEFT_CHECK(wants(session, "session"));
    weft_options o{};
    if (options) std::memcpy(&o, options, std::min(options->size, sizeof o));
    const Policy policy{.fallback = static_cast<Fallback>(o.fallback)};
    if (o.fallback < WEFT_FALLBACK_FORBID || o.fallback > WEFT_FALLBACK_ALLOW)
      return invalid("there is no fallback {}", static_cast<int>(o.fallback));
    WEFT_TRY(auto devices, runtime::devices_for(o.backend ? o.backend : "", policy));
    auto made = std::make_unique<weft_session>();
    runtime::Present present;
    if (o.states_of) {
      const runtime::Session& other = *o.states_of->session;
      WEFT_CHECK(check_shared_states(*program->program, *devices.at(0), other));
      const auto& own = program->program->states;
      present = [&](const std::string& name, const seam::Device&) {
        const bool state = std::ranges::find(own, name, &program::StateSpec::name) != own.end();
        return state ? other.state_memory(name) : seam::BufferRef();
      };
      made->busy = o.states_of->busy;
    }
    WEFT_TRY(made->session, runtime::Session::create(program->program, std::move(devices), policy, present));
    made->inputs.resize(program->program->inputs.size());
    made->outputs.resize(program->program->outputs.size());
    *session = made.release();
    return {};
  });
}

void weft_session_free(weft_session* session) { delete session; }

const char* weft_session_backend(const weft_session* session) { return session->session->backend().c_str(); }

weft_result weft_session_bind_input(weft_session* session, size_t index, const int64_t* dims, size_t rank,
                                    const void* data, size_t bytes) {
  return on_session(session, [&]() -> Status {
    if (rank) WEFT_CHECK(wants(dims, "dims"));
    if (bytes) WEFT_CHECK(wants(data, "data"));
    const auto& p = session->session->program();
    if (index >= p.inputs.size()) return invalid("input {} of {}", index, p.inputs.size());
    auto& in = session->inputs[index];
    in.view = {{p.values[static_cast<size_t>(p.inputs[index].value)].type.dtype, IntList(dims, dims + rank)},
               {static_cast<const std::byte*>(data), bytes}};
    in.bound = true;
    return {};
  });
}

weft_result weft_session_bind_output(weft_session* session, size_t index, void* data, size_t bytes) {
  return on_session(session, [&]() -> Status {
    if (index >= session->outputs.size()) return invalid("output {} of {}", index, session->outputs.size());
    session->outputs[index].bound = {static_cast<std::byte*>(data), bytes};
    return {};
  });
}

weft_result weft_session_run(weft_session* session) {
  return on_session(session, [&]() -> Status { return run(*session); });
}

weft_result weft_session_output(weft_session* session, size_t index, weft_array* array) {
  return on_session(session, [&]() -> Status {
    WEFT_CHECK(wants(array, "array"));
    if (index >= session->outputs.size()) return invalid("output {} of {}", index, session->outputs.size());
    if (!session->ran) return invalid("there is no output before a run that succeeds");
    const auto& out = session->outputs[index];
    const auto bytes = out.bound.data() ? std::span<const std::byte>(out.bound) : std::span(out.own);
    *array = {bytes.data(), bytes.size(), out.type.shape.size(), out.type.shape.data()};
    return {};
  });
}

weft_result weft_session_read_state(weft_session* session, const char* name, void* data, size_t bytes) {
  return on_session(session, [&]() -> Status {
    WEFT_CHECK(wants(name, "name"));
    WEFT_TRY(const auto value, session->session->state(name));
    if (value.bytes.size() != bytes)
      return invalid("state {} is {}, {} bytes; got memory for {}", name, seam::text(value.type),
                     value.bytes.size(), bytes);
    if (bytes) WEFT_CHECK(wants(data, "data"));
    std::memcpy(data, value.bytes.data(), bytes);
    return {};
  });
}

weft_result weft_session_write_state(weft_session* session, const char* name, const void* data,
                                     size_t bytes) {
  return on_session(session, [&]() -> Status {
    WEFT_CHECK(wants(name, "name"));
    if (bytes) WEFT_CHECK(wants(data, "data"));
    WEFT_TRY(auto value, session->session->state(name));
    const auto* from = static_cast<const std::byte*>(data);
    value.bytes.assign(from, from + bytes);
    return session->session->set_state(name, value);
  });
}

}  // extern "C"
